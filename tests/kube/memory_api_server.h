#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/api/time.h"
#include "operator/kube/http_transport.h"
#include "tests/kube/request_target.h"
#include "tests/kube/schema.h"

namespace pliant::kube {

struct MemoryApiServerOptions {
  // Requests without this bearer token are refused; empty: all requests are accepted.
  std::string token;
  // Whether a watch may begin with a list of all objects.
  bool streams_lists = true;
  // Whether a watch waits for events in real time, as a server's does. Otherwise it delivers the
  // events so far and ends orderly: for virtual time.
  bool watches_wait = true;
  // Whether dependents are deleted at once after their owner. Otherwise CollectGarbage deletes
  // them.
  bool collects_garbage = true;
  // The number of past changes that a watch can start from.
  std::size_t history = 100'000;
  std::function<api::WallTime()> now;
};

// A Kubernetes API server in memory, behind the client's own interface: create, replace, patch and
// delete with versions, uids and preconditions, dry runs, status and scale, custom definitions with
// their schemas, pages, selectors, watches with bookmarks, initial events and a limited history,
// graceful deletion, finalizers, garbage collection and orphaning. It passes the same conformance
// tests as the real server.
//
// Not modelled: authorization, quotas except of GPUs, admission except `mutate` and `refuse`, CEL
// rules, and ownership of fields. The pages of one list may come from different instants.
//
// Any thread may call it. `on_change`, `mutate` and `refuse` run within the call that causes them.
class MemoryApiServer final : public HttpTransport {
 public:
  using Json = nlohmann::json;
  using Object = std::shared_ptr<const Json>;

  explicit MemoryApiServer(MemoryApiServerOptions options);

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop = {}) override;

  // Access for simulated kubelets, schedulers and node controllers. `path` is the object's own.
  Object Find(const std::string& path) const;
  // All objects of a collection, ordered by path: "/api/v1/namespaces/a/pods", or "/api/v1/pods"
  // for all namespaces.
  std::vector<std::pair<std::string, Object>> All(const std::string& collection) const;
  // Stores without any check; a new object gets a uid.
  void Put(const std::string& path, Json object);
  void Change(const std::string& path, const std::function<void(Json& object)>& change);
  void Remove(const std::string& path);

  // Deletes objects whose owner is deleted. Returns whether there were any.
  bool CollectGarbage();
  // Drops all changes so far: a watch from an earlier version is answered with "gone".
  void ForgetHistory();

  // Called after every change; a deleted object is null.
  std::function<void(const std::string& path, const Object& object)> on_change;
  // A mutating webhook: changes an object before it is created.
  std::function<void(const std::string& path, Json& object)> mutate;
  // A validating webhook: the reason to refuse (403) an object before it is created; "" to accept
  // it.
  std::function<std::string(const std::string& path, const Json& object)> refuse;
  // A quota counts a pod for this long after it has ended or is gone, as one does that a controller
  // counts again.
  Duration quota_lag{};

 private:
  struct Kind {
    std::string name;  // "Pod"
    bool status_door = false;
    std::optional<Json> definition;  // of a custom kind: the version's entry in its CRD
  };
  struct Event {
    std::int64_t version = 0;
    std::string path;
    Object before;  // null: it was created
    Object after;   // null: it was deleted
  };

  HttpResponse Answer(const HttpRequest& request);
  HttpResponse List(const RequestTarget& target) const;
  HttpResponse Get(const RequestTarget& target) const;
  HttpResponse Create(const RequestTarget& target, Json object);
  static std::int64_t CountedGpus(const Json& pod);
  void NoteRelease(const std::string& path, const Object& before, const Object& after);
  std::string ExceededQuota(const RequestTarget& target, const Json& pod) const;
  HttpResponse Update(const RequestTarget& target, Json object);
  HttpResponse Patch(const RequestTarget& target, const Json& patch);
  HttpResponse PatchScale(const RequestTarget& target, const Kind& kind, const Json& patch);
  HttpResponse Delete(const RequestTarget& target, const Json& options);
  HttpResponse Replace(const RequestTarget& target, const Kind& kind, Json object);

  std::optional<Kind> KindOf(const RequestTarget& target) const;
  // Prunes a custom object, fills in its defaults, and returns the first field that violates its
  // schema.
  static std::optional<WrongField> Conform(const Kind& kind, const Json* before, Json& object);
  void DeleteObject(const std::string& path, const Json& options);
  bool OrphanOnce();
  bool CollectOnce();
  void Store(const std::string& path, Json object);
  void Tell(const std::string& path, Object before, Object after, std::int64_t version);
  std::string Now() const;
  api::WallTime Clock() const;
  std::string NewUid();

  // The lines that a watch from `version` on gets now. Sets `version` to the current one.
  std::optional<std::vector<std::string>> LinesSince(const RequestTarget& target,
                                                     std::int64_t& version) const;
  // The existing objects, for a watch that begins with them, and the bookmark that ends the list.
  std::vector<std::string> InitialLines(const RequestTarget& target) const;
  std::string Bookmark(const RequestTarget& target, std::int64_t version,
                       Json annotations = Json::object()) const;

  const MemoryApiServerOptions options_;
  mutable std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  // All members below are guarded by mutex_.
  std::map<std::string, Object> objects_;  // by path
  std::deque<Event> events_;
  std::int64_t version_ = 100;
  std::int64_t forgotten_ = 99;  // changes up to this version are dropped
  std::int64_t uids_ = 0;
  std::int64_t addresses_ = 0;
  // GPUs of pods that no longer count, with the time until which a quota still counts them. By
  // namespace.
  std::map<std::string, std::vector<std::pair<api::WallTime, std::int64_t>>> released_;
};

}  // namespace pliant::kube
