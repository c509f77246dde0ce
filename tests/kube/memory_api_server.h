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
  // Who comes without this bearer token is refused; empty: everybody is let in.
  std::string token;
  // Whether a watch may begin with all that there is.
  bool streams_lists = true;
  // Whether a watch waits for what happens, in real time, as a server's does. Otherwise it tells
  // what has happened, and ends in order: for virtual time.
  bool watches_wait = true;
  // Whether dependents go as soon as their owner has gone. Otherwise when CollectGarbage is called.
  bool collects_garbage = true;
  // How many changes a watch may go back.
  std::size_t history = 100'000;
  std::function<api::WallTime()> now;
};

// A Kubernetes API server in memory, behind the client's own seam: create, replace, patch and
// delete with versions, uids and preconditions, dry runs, status and scale, custom definitions with
// their schemas, pages, selectors, watches with bookmarks, initial events and an end to history,
// graceful deletion and garbage collection. It passes the conformance tests that the real one
// passes.
//
// Not modelled: authorization, quotas but of GPUs, admission (except for `mutate` and `refuse`),
// CEL rules, ownership of fields, and a list's pages are of different instants.
//
// Any thread; `on_change`, `mutate` and `refuse` run within the call that causes them.
class MemoryApiServer final : public HttpTransport {
 public:
  using Json = nlohmann::json;
  using Object = std::shared_ptr<const Json>;

  explicit MemoryApiServer(MemoryApiServerOptions options);

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop = {}) override;

  // What kubelets, the scheduler and node controllers do. `path` is the object's own.
  Object Find(const std::string& path) const;
  // All objects of a collection, in the order of their paths: "/api/v1/namespaces/a/pods", or
  // "/api/v1/pods" for those of all namespaces.
  std::vector<std::pair<std::string, Object>> All(const std::string& collection) const;
  // Without any check; a new object gets its uid.
  void Put(const std::string& path, Json object);
  void Change(const std::string& path, const std::function<void(Json& object)>& change);
  void Remove(const std::string& path);

  // Deletes what belongs to somebody who is gone. Whether there was anything to do.
  bool CollectGarbage();
  // Forgets all changes so far: a watch from before now is answered by "gone".
  void ForgetHistory();

  // Told of every change, after it; an object that is gone is null.
  std::function<void(const std::string& path, const Object& object)> on_change;
  // A mutating webhook: changes an object that is to be created.
  std::function<void(const std::string& path, Json& object)> mutate;
  // Why an object that is to be created is refused (403); "" if it is not.
  std::function<std::string(const std::string& path, const Json& object)> refuse;

 private:
  struct Kind {
    std::string name;  // "Pod"
    bool status_door = false;
    std::optional<Json> definition;  // of a custom one: its version
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
  std::string ExceededQuota(const RequestTarget& target, const Json& pod) const;
  HttpResponse Update(const RequestTarget& target, Json object);
  HttpResponse Patch(const RequestTarget& target, const Json& patch);
  HttpResponse PatchScale(const RequestTarget& target, const Kind& kind, const Json& patch);
  HttpResponse Delete(const RequestTarget& target, const Json& options);
  HttpResponse Replace(const RequestTarget& target, const Kind& kind, Json object);

  std::optional<Kind> KindOf(const RequestTarget& target) const;
  // Makes a custom object what its schema says, or tells why it cannot be.
  static std::optional<WrongField> Conform(const Kind& kind, const Json* before, Json& object);
  void DeleteObject(const std::string& path, const Json& options);
  bool CollectOnce();
  void Store(const std::string& path, Json object);
  void Tell(const std::string& path, Object before, Object after, std::int64_t version);
  std::string Now() const;
  api::WallTime Clock() const;
  std::string NewUid();

  // The lines that a watch from `version` on gets now, and the version up to which that is.
  std::optional<std::vector<std::string>> LinesSince(const RequestTarget& target,
                                                     std::int64_t& version) const;
  // What is there now, for a watch that begins with it, and the bookmark that ends that part.
  std::vector<std::string> InitialLines(const RequestTarget& target) const;
  std::string Bookmark(const RequestTarget& target, std::int64_t version,
                       Json annotations = Json::object()) const;

  const MemoryApiServerOptions options_;
  mutable std::recursive_mutex mutex_;
  std::condition_variable_any changed_;
  // All guarded by mutex_.
  std::map<std::string, Object> objects_;  // by path
  std::deque<Event> events_;
  std::int64_t version_ = 100;
  std::int64_t forgotten_ = 99;  // changes up to this one are forgotten
  std::int64_t uids_ = 0;
  std::int64_t addresses_ = 0;
};

}  // namespace pliant::kube
