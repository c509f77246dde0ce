#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "operator/kube/client.h"
#include "operator/kube/reflector_policy.h"

namespace pliant::kube {

// Callbacks of a reflector, in the order of the events, on the reflector's thread.
struct ReflectorSink {
  // A list in three parts. When it ends, objects that it did not name no longer exist. An
  // interrupted list starts again with on_list_begin.
  std::function<void()> on_list_begin;
  std::function<void(const nlohmann::json& object)> on_listed;
  std::function<void()> on_list_end;

  std::function<void(const nlohmann::json& object)> on_changed;  // added or modified
  std::function<void(const nlohmann::json& object)> on_deleted;

  // on_interrupted: the objects may be out of date from now on, because the server does not answer.
  // on_resumed: they are up to date again. May be empty.
  std::function<void()> on_interrupted;
  std::function<void()> on_resumed;

  // true: the server keeps refusing access to the objects (403), perhaps permanently. false: it
  // allows it again. May be empty.
  std::function<void(bool refused)> on_refused;

  // For metrics: it had to list or watch again, with a short reason. May be empty.
  std::function<void(std::string_view reason)> on_restart;
};

struct ReflectorOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  bool stream_lists = true;  // where the server supports it
  // The server may lack the kind, because its custom resource definition is not installed, or may
  // never have allowed to read it, because our role lacks the right: then there are no objects of
  // it.
  bool kind_is_optional = false;
  ReflectorTiming timing;
};

// Follows all objects of one kind, one list or one watch at a time: lists them, then watches, and
// lists again when the watch cannot be continued. Lists are streamed where the server supports it,
// so that neither side holds a whole list as text. It retries forever and logs each new problem
// once. One thread, which it blocks.
class ReflectorSteps {
 public:
  // `client` outlives this object; waits are measured with `clock`.
  ReflectorSteps(KubeClient& client, const ResourceType& type, ReflectorOptions options,
                 ReflectorSink sink, std::function<TimePoint()> clock = MonotonicNow);

  // Runs the next list or watch to its end. Returns how long to wait before the next call. `random`
  // in [0, 1).
  Duration Next(double random, const std::stop_token& stop = {});

 private:
  // Return the list's resource version; StreamList returns nullopt if the server does not support
  // streamed lists.
  KubeResult<std::string> List(const std::stop_token& stop);
  KubeResult<std::optional<std::string>> StreamList(const std::stop_token& stop);
  void EndList();
  KubeStatus WatchFrom(const ReflectorPolicy::Step& step, const std::stop_token& stop);
  void Interrupted();
  void Resumed();
  void Refused();
  void Missing();
  void Allowed();
  void Recovered();
  void Failed(std::string_view doing, const KubeError& error);

  KubeClient& client_;
  const ResourceType type_;
  const ReflectorOptions options_;
  const ReflectorSink sink_;
  const std::function<TimePoint()> clock_;
  ReflectorPolicy policy_;
  ReflectorPolicy::Step step_;
  bool interrupted_ = false;
  bool has_listed_ = false;
  std::optional<TimePoint> missing_since_;   // of an optional kind
  bool refused_ = false;                     // as last reported to the sink
  std::optional<TimePoint> refusals_began_;  // since then every answer was a refusal
  std::string failure_;                      // the error logged last; empty while it works
};

// Runs ReflectorSteps on its own thread.
class Reflector {
 public:
  // Starts at once. `client` outlives the reflector.
  Reflector(KubeClient& client, const ResourceType& type, ReflectorOptions options,
            ReflectorSink sink);
  // Waits for the thread, which cancels its request at once.
  ~Reflector() = default;

 private:
  ReflectorSteps steps_;  // its own thread only
  std::jthread thread_;   // last: joined before the rest is destroyed
};

}  // namespace pliant::kube
