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

// What a reflector tells, in the order in which it happened, on the reflector's own thread.
struct ReflectorSink {
  // A list in three parts. When it ends, objects that it did not name are gone. A list that breaks
  // off begins anew.
  std::function<void()> on_list_begin;
  std::function<void(const nlohmann::json& object)> on_listed;
  std::function<void()> on_list_end;

  std::function<void(const nlohmann::json& object)> on_changed;  // added or modified
  std::function<void(const nlohmann::json& object)> on_deleted;

  // What was told may be behind from now on, for want of an answer; then: no more. May be empty.
  std::function<void()> on_interrupted;
  std::function<void()> on_resumed;

  // The server keeps saying that this program may not follow them (403), which may be so for ever;
  // then: that it may. May be empty.
  std::function<void(bool refused)> on_refused;

  // For metrics: it had to list or watch again, with the reason in a word or two. May be empty.
  std::function<void(std::string_view reason)> on_restart;
};

struct ReflectorOptions {
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  bool stream_lists = true;  // where the server can
  ReflectorTiming timing;
};

// Follows all objects of one kind, one list or one watch at a time: lists them, then watches, and
// lists again when the watch cannot be continued. Lists are streams where the server can, so that
// neither side ever holds a whole one as text. Never gives up; it logs what keeps it from
// working once a change. One thread, which it blocks.
class ReflectorSteps {
 public:
  // `client` outlives the steps; `clock` tells the time of the waits.
  ReflectorSteps(KubeClient& client, const ResourceType& type, ReflectorOptions options,
                 ReflectorSink sink, std::function<TimePoint()> clock = MonotonicNow);

  // The next list or watch, to its end. How long to wait then. `random` in [0, 1).
  Duration Next(double random, const std::stop_token& stop = {});

 private:
  // The list's resource version; of a streamed one, nothing if the server does not know how to.
  KubeResult<std::string> List(const std::stop_token& stop);
  KubeResult<std::optional<std::string>> StreamList(const std::stop_token& stop);
  void EndList();
  KubeStatus WatchFrom(const ReflectorPolicy::Step& step, const std::stop_token& stop);
  void Interrupted();
  void Resumed();
  void Refused();
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
  bool refused_ = false;                     // as told
  std::optional<TimePoint> refusals_began_;  // nothing but refusals since
  std::string failure_;                      // what was logged last; empty while all is well
};

// The same on a thread of its own.
class Reflector {
 public:
  // Begins at once. `client` outlives the reflector.
  Reflector(KubeClient& client, const ResourceType& type, ReflectorOptions options,
            ReflectorSink sink);
  // Waits for the thread, which stops its request at once.
  ~Reflector() = default;

 private:
  ReflectorSteps steps_;  // its own thread only
  std::jthread thread_;   // last: joined before the rest is destroyed
};

}  // namespace pliant::kube
