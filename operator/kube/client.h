#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/event_loop.h"
#include "operator/kube/config.h"
#include "operator/kube/http_transport.h"
#include "operator/kube/kube_error.h"
#include "operator/kube/object.h"

namespace pliant::kube {

// One exchange with the API server, for metrics.
struct RequestReport {
  HttpMethod method = HttpMethod::kGet;
  std::string_view code;  // "200", or "<error>" when there was no answer
  Duration took{};
  std::string_view date;  // the answer's Date header; "" for a stream, which lasts long
};

struct ClientOptions {
  // The User-Agent header.
  std::string user_agent = "pliant-operator";
  // The field manager of all writes.
  std::string field_manager = "pliant-operator";
  // Requests per second and burst, for all threads together; a rate of 0 means no limit. The lease
  // has its own client, so that it never waits behind other calls.
  double requests_per_second = 50;
  int burst = 100;
  Duration read_deadline = std::chrono::seconds(30);
  // Short: a write in flight when the lease is lost cannot be recalled, so it must have ended
  // before another replica may begin.
  Duration write_deadline = std::chrono::seconds(4);
  // A longer answer is kInvalid; lines of a watch have their own limit.
  std::size_t max_answer_bytes = std::size_t{256} << 20;
  // Called before each write is sent, also before its retry. False: kCancelled, nothing is sent.
  // Any thread.
  std::function<bool()> may_write;
  // Called after each exchange, on the caller's thread.
  std::function<void(const RequestReport&)> on_request;
};

struct WriteOptions {
  std::string_view subresource;  // "status", "scale"
  bool dry_run = false;          // the server performs all checks and stores nothing
  bool strict = false;           // Create: fields that the server does not know are an error
  // Overrides the client's deadline, for a write that is harmless if it arrives late.
  std::optional<Duration> deadline;
  std::stop_token stop;
};

struct DeleteOptions {
  // Preconditions; kConflict if it is another object or has changed.
  std::string uid;
  std::string resource_version;
  std::optional<Duration> grace_period;  // whole seconds; 0 kills at once
  bool foreground = false;               // deletes dependents first
  bool dry_run = false;
  std::stop_token stop;
};

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  int limit = 500;             // objects per page; 0: all in one page
  std::string continue_token;  // from the previous page
  std::stop_token stop;
};

struct ListPage {
  std::vector<nlohmann::json> items;  // without kind and apiVersion, as the server returns them
  std::string resource_version;       // of the whole list: a watch may begin here
  std::string continue_token;         // empty on the last page
  std::size_t bytes = 0;              // of the answer
};

struct WatchOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;
  // The existing objects come first, as kAdded; a bookmark with the annotation
  // k8s.io/initial-events-end ends them. kInvalid from a server that does not support this.
  bool initial_events = false;
  Duration timeout = std::chrono::minutes(5);  // the server ends the watch after it
  Duration idle = std::chrono::seconds(75);    // bookmarks come about once a minute
  std::function<void()> on_open;               // called when the server begins to answer
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };
// False ends the watch. The object may be moved from.
using WatchSink = std::function<bool(WatchEventType type, nlohmann::json& object)>;

// Calls to one API server. Objects are the server's JSON; the caller decodes what it needs.
// Blocking; any thread. It retries only when the server rejects the token and the token file holds
// a new one. `transport` outlives the client.
class KubeClient {
 public:
  KubeClient(HttpTransport& transport, const Config& config, ClientOptions options = {});
  ~KubeClient();

  KubeResult<nlohmann::json> Get(const ResourceType& type, const NamespacedName& key,
                                 std::string_view subresource = "", std::stop_token stop = {});
  // Empty `ns`: all namespaces.
  KubeResult<ListPage> List(const ResourceType& type, const std::string& ns,
                            const ListOptions& options = {});

  // The object's metadata names it. kind and apiVersion are added if they are missing.
  // kAlreadyExists may be due to our own request, sent twice: read the object.
  KubeResult<nlohmann::json> Create(const ResourceType& type, const nlohmann::json& object,
                                    const WriteOptions& options = {});
  // Replaces the object. With metadata.resourceVersion: kConflict if it has changed since.
  KubeResult<nlohmann::json> Update(const ResourceType& type, const nlohmann::json& object,
                                    const WriteOptions& options = {});
  // A merge patch (RFC 7386: an object; null removes a field). If it has metadata.resourceVersion
  // or metadata.uid, it is conditional on them.
  KubeResult<nlohmann::json> Patch(const ResourceType& type, const NamespacedName& key,
                                   const nlohmann::json& patch, const WriteOptions& options = {});
  // Success means that deletion has begun: the object may exist until its grace period ends.
  KubeStatus Delete(const ResourceType& type, const NamespacedName& key,
                    const DeleteOptions& options = {});

  // Blocks until the server ends the watch (a result), or there is an error; kGone: list again.
  // Events go to `sink` on the calling thread. Not rate-limited.
  KubeStatus Watch(const ResourceType& type, const std::string& ns, const WatchOptions& options,
                   const WatchSink& sink, std::stop_token stop = {});

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace pliant::kube
