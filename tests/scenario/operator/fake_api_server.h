#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube/http_transport.h"

namespace pliant {

// As much of an API server as the operator writes to: create (also dry), merge patch with the
// status apart, get and delete, with versions and preconditions. Objects are kept by path.
// Single-threaded.
class FakeApiServer final : public kube::HttpTransport {
 public:
  using Object = nlohmann::json;

  Result<kube::HttpResponse> Send(const kube::HttpRequest& request,
                                  std::stop_token stop = {}) override;
  Result<kube::HttpResponse> Stream(const kube::HttpRequest& request, const kube::LineSink& sink,
                                    Duration idle, std::stop_token stop = {}) override;

  // Behind the operator's back: kubelets, users. `path` is the object's own.
  const Object* Find(const std::string& path) const;
  void Change(const std::string& path, const std::function<void(Object&)>& change);
  void Put(const std::string& path, Object object);
  void Remove(const std::string& path);
  // All objects of a kind ("pods"), in the order of their paths.
  std::vector<std::pair<std::string, Object>> All(const std::string& plural) const;

  // Told of every change, after it; an object that is gone is null.
  std::function<void(const std::string& path, const Object& object)> on_change;
  // With which HTTP status a request fails, undone; 0: it does not. Time may pass within.
  std::function<int(const kube::HttpRequest& request)> fail;
  // Whether a request is done, and its answer does not come in time.
  std::function<bool(const kube::HttpRequest& request)> lose;
  std::string retry_after;  // the header of such an answer; "": it has none
  // Why a pod that is to be created is refused; "" if it is not.
  std::function<std::string(const Object& pod)> refuse;
  // A field of jobs' status that the definition of the resource does not have yet.
  std::string unknown_field;

  int writes = 0;  // by the operator, dry ones not counted

 private:
  kube::HttpResponse Do(const kube::HttpRequest& request);
  kube::HttpResponse Create(const std::string& path, Object object, bool dry_run);
  kube::HttpResponse Patch(std::string path, Object patch);
  kube::HttpResponse Delete(const std::string& path, const Object& options);
  void Store(const std::string& path, Object object);

  std::map<std::string, Object> objects_;
  std::int64_t version_ = 100;
};

}  // namespace pliant
