#include "tests/scenario/operator/fake_api_server.h"

#include "base/format.h"

namespace pliant {
namespace {

using kube::HttpMethod;
using kube::HttpResponse;
using nlohmann::json;

HttpResponse Answer(const json& object) { return {.status = 200, .body = object.dump()}; }

HttpResponse Refuse(int status, const std::string& reason, const std::string& message) {
  return {.status = status,
          .body = json{{"kind", "Status"},
                       {"status", "Failure"},
                       {"reason", reason},
                       {"message", message},
                       {"code", status}}
                      .dump()};
}

}  // namespace

Result<HttpResponse> FakeApiServer::Send(const kube::HttpRequest& request, std::stop_token) {
  if (const int status = fail ? fail(request) : 0; status != 0) {
    HttpResponse refusal = Refuse(status, "InternalError", "failed calling webhook");
    if (!retry_after.empty()) refusal.headers.emplace("Retry-After", retry_after);
    return refusal;
  }
  HttpResponse answer = Do(request);
  if (lose && lose(request)) return Fail(ErrorCode::kTimeout, "no answer in time");
  return answer;
}

HttpResponse FakeApiServer::Do(const kube::HttpRequest& request) {
  const std::size_t question = request.target.find('?');
  const std::string path = request.target.substr(0, question);
  const std::string query =
      question == std::string::npos ? "" : request.target.substr(question + 1);
  const json body = request.body.empty() ? json::object() : json::parse(request.body);
  switch (request.method) {
    case HttpMethod::kGet: {
      const Object* found = Find(path);
      return found != nullptr ? Answer(*found) : Refuse(404, "NotFound", path + " not found");
    }
    case HttpMethod::kPost:
      return Create(path + "/" + body.at("metadata").at("name").get<std::string>(), body,
                    query.find("dryRun=All") != std::string::npos);
    case HttpMethod::kPatch:
      return Patch(path, body);
    case HttpMethod::kDelete:
      return Delete(path, body);
    case HttpMethod::kPut:
      break;
  }
  return Refuse(405, "MethodNotAllowed", "the operator has no need of this");
}

Result<HttpResponse> FakeApiServer::Stream(const kube::HttpRequest&, const kube::LineSink&,
                                           Duration, std::stop_token) {
  return Fail(ErrorCode::kUnavailable, "stores are fed directly");
}

const FakeApiServer::Object* FakeApiServer::Find(const std::string& path) const {
  const auto found = objects_.find(path);
  return found == objects_.end() ? nullptr : &found->second;
}

std::vector<std::pair<std::string, FakeApiServer::Object>> FakeApiServer::All(
    const std::string& plural) const {
  std::vector<std::pair<std::string, Object>> found;
  for (const auto& [path, object] : objects_) {
    if (path.find("/" + plural + "/") != std::string::npos) found.emplace_back(path, object);
  }
  return found;
}

void FakeApiServer::Store(const std::string& path, Object object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  objects_[path] = std::move(object);
  on_change(path, objects_[path]);
}

void FakeApiServer::Put(const std::string& path, Object object) {
  object["metadata"]["uid"] = Format("{:05x}-uid", ++version_);
  object["metadata"]["generation"] = 1;
  Store(path, std::move(object));
}

void FakeApiServer::Change(const std::string& path, const std::function<void(Object&)>& change) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return;
  Object object = found->second;
  const json spec = object.value("spec", json());
  change(object);
  if (object.value("spec", json()) != spec) {
    object["metadata"]["generation"] = object["metadata"].value("generation", 0) + 1;
  }
  Store(path, std::move(object));
}

void FakeApiServer::Remove(const std::string& path) {
  if (objects_.erase(path) > 0) on_change(path, nullptr);
}

HttpResponse FakeApiServer::Create(const std::string& path, Object object, bool dry_run) {
  const bool pod = path.find("/pods/") != std::string::npos;
  if (pod && refuse) {
    if (const std::string why = refuse(object); !why.empty()) return Refuse(403, "Forbidden", why);
  }
  if (objects_.contains(path)) return Refuse(409, "AlreadyExists", path + " already exists");
  if (dry_run) return Answer(object);
  ++writes;
  if (path.find("/services/") != std::string::npos) object["spec"]["clusterIP"] = "10.0.0.7";
  if (pod) object["status"]["phase"] = "Pending";
  Put(path, std::move(object));
  return Answer(objects_.at(path));
}

HttpResponse FakeApiServer::Patch(std::string path, Object patch) {
  const bool status = path.ends_with("/status");
  if (status) path.resize(path.size() - std::string("/status").size());
  const auto found = objects_.find(path);
  if (found == objects_.end()) return Refuse(404, "NotFound", path + " not found");
  Object object = found->second;
  if (patch.contains("metadata")) {
    for (const char* precondition : {"uid", "resourceVersion"}) {
      if (patch["metadata"].contains(precondition) &&
          patch["metadata"][precondition] != object["metadata"][precondition]) {
        return Refuse(409, "Conflict", path + " has changed");
      }
    }
  }
  ++writes;
  if (status) {
    object.merge_patch({{"status", patch.at("status")}});
    object["status"].erase(unknown_field);
  } else {
    patch.erase("status");
    object.merge_patch(patch);
  }
  Store(path, std::move(object));
  return Answer(objects_.at(path));
}

HttpResponse FakeApiServer::Delete(const std::string& path, const Object& options) {
  const auto found = objects_.find(path);
  if (found == objects_.end()) return Refuse(404, "NotFound", path + " not found");
  const std::string uid = options.value("/preconditions/uid"_json_pointer, "");
  if (!uid.empty() && found->second["metadata"]["uid"] != uid) {
    return Refuse(409, "Conflict", path + " is another one");
  }
  ++writes;
  const json object = found->second;
  // What no kubelet has, goes at once; all else when its kubelet has ended it.
  if (!object["spec"].contains("nodeName")) {
    Remove(path);
  } else if (!object["metadata"].contains("deletionTimestamp")) {
    Change(path,
           [](Object& pod) { pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z"; });
  }
  return Answer(object);
}

}  // namespace pliant
