#include "tests/kube/memory_api_server.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <ranges>
#include <set>

#include "base/format.h"
#include "tests/kube/object_rules.h"
#include "tests/kube/schema.h"
#include "tests/kube/selectors.h"

namespace pliant::kube {
namespace {

using json = nlohmann::json;

constexpr std::string_view kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kForeground = "foregroundDeletion";
constexpr const char* kOrphan = "orphan";

struct KnownKind {
  std::string_view group_version;
  std::string_view plural;
  std::string_view name;
  bool status_door = false;
};
constexpr KnownKind kKnownKinds[] = {
    {"/api/v1", "namespaces", "Namespace", true},
    {"/api/v1", "nodes", "Node", true},
    {"/api/v1", "pods", "Pod", true},
    {"/api/v1", "services", "Service", true},
    {"/api/v1", "resourcequotas", "ResourceQuota", true},
    {"/api/v1", "secrets", "Secret"},
    {"/api/v1", "configmaps", "ConfigMap"},
    {"/api/v1", "podtemplates", "PodTemplate"},
    {"/api/v1", "serviceaccounts", "ServiceAccount"},
    {"/apis/coordination.k8s.io/v1", "leases", "Lease"},
    {"/apis/events.k8s.io/v1", "events", "Event"},
    {"/apis/networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", true},
    {"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition",
     true},
};

HttpResponse Ok(const json& object, int status = 200) {
  return {.status = status, .headers = {}, .body = object.dump()};
}

json StatusObject(int code, std::string_view reason, const std::string& message) {
  return {{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
          {"message", message}, {"reason", reason},   {"code", code}};
}

HttpResponse Refuse(int code, std::string_view reason, const std::string& message) {
  return Ok(StatusObject(code, reason, message), code);
}

HttpResponse NotFound(const RequestTarget& target) {
  return Refuse(404, "NotFound", Format("{} \"{}\" not found", target.plural, target.name));
}

HttpResponse Conflict(const RequestTarget& target, std::string_view why) {
  return Refuse(
      409, "Conflict",
      Format("Operation cannot be fulfilled on {} \"{}\": {}", target.plural, target.name, why));
}

HttpResponse Wrong(const RequestTarget& target, const WrongField& field) {
  return Refuse(422, "Invalid",
                Format("{} \"{}\" is invalid: {}: Invalid value: {}", target.plural, target.name,
                       field.path, field.why));
}

// Turns ".spec.size" into a JSON pointer.
json::json_pointer PointerTo(std::string path) {
  std::ranges::replace(path, '.', '/');
  return json::json_pointer(path);
}

std::optional<std::int64_t> ParseVersion(const std::string& text) {
  std::int64_t version = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, version).ptr != end || text.empty()) return std::nullopt;
  return version;
}

std::optional<std::string> Unmet(const json& preconditions, const json& object) {
  for (const char* name : {"uid", "resourceVersion"}) {
    const std::string wanted = preconditions.value(name, "");
    if (!wanted.empty() && object.at("metadata").value(name, "") != wanted) {
      return Format("{} is another one by now", name);
    }
  }
  return std::nullopt;
}

json FinalizersOf(const json& object) {
  return object.at("metadata").value("finalizers", json::array());
}

bool HasFinalizer(const json& object, const char* finalizer) {
  return std::ranges::contains(FinalizersOf(object), json(finalizer));
}

bool IsForeground(const json& object) { return HasFinalizer(object, kForeground); }

// Whether its deletion waited only for the finalizers that it no longer has. A pod also waits for
// its kubelet.
bool IsReleased(const json& before, const json& after) {
  return after.at("metadata").contains("deletionTimestamp") && FinalizersOf(after).empty() &&
         !FinalizersOf(before).empty() &&
         after.at("metadata").value("deletionGracePeriodSeconds", 0) == 0;
}

bool Chosen(const RequestTarget& target, const json& object) {
  return MatchesLabels(object, target.Query("labelSelector")) &&
         MatchesFields(object, target.Query("fieldSelector"));
}

std::string Line(std::string_view type, const json& object) {
  return json{{"type", type}, {"object", object}}.dump();
}

}  // namespace

MemoryApiServer::MemoryApiServer(MemoryApiServerOptions options) : options_(std::move(options)) {}

namespace {

std::string HttpDate(api::WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm fields{};
  gmtime_r(&seconds, &fields);
  char text[64] = {};
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &fields);
  return text;
}

}  // namespace

Result<HttpResponse> MemoryApiServer::Send(const HttpRequest& request, std::stop_token stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  const std::lock_guard lock(mutex_);
  HttpResponse response = Answer(request);
  response.headers["Date"] = HttpDate(Clock());
  if (options_.collects_garbage) {
    while (CollectOnce()) {
    }
  }
  return response;
}

HttpResponse MemoryApiServer::Answer(const HttpRequest& request) {
  const auto token = request.headers.find("Authorization");
  if (!options_.token.empty() &&
      (token == request.headers.end() || token->second != "Bearer " + options_.token)) {
    return Refuse(401, "Unauthorized", "Unauthorized");
  }
  const auto target = ParseTarget(request.target);
  if (!target || !KindOf(*target)) {
    return Refuse(404, "NotFound", "the server could not find the requested resource");
  }
  const json body =
      request.body.empty() ? json::object() : json::parse(request.body, nullptr, false);
  if (body.is_discarded()) return Refuse(400, "BadRequest", "the body is not JSON");
  switch (request.method) {
    case HttpMethod::kGet:
      return target->name.empty() ? List(*target) : Get(*target);
    case HttpMethod::kPost:
      return Create(*target, body);
    case HttpMethod::kPut:
      return Update(*target, body);
    case HttpMethod::kPatch:
      return Patch(*target, body);
    case HttpMethod::kDelete:
      return Delete(*target, body);
  }
  return Refuse(405, "MethodNotAllowed", "no such method");
}

std::optional<MemoryApiServer::Kind> MemoryApiServer::KindOf(const RequestTarget& target) const {
  for (const KnownKind& known : kKnownKinds) {
    if (known.group_version == target.group_version && known.plural == target.plural) {
      return Kind{
          .name = std::string(known.name), .status_door = known.status_door, .definition = {}};
    }
  }
  // "/apis/GROUP/VERSION"
  const std::size_t slash = target.group_version.rfind('/');
  if (slash < 6) return std::nullopt;
  const std::string group = target.group_version.substr(6, slash - 6);
  const Object definition = Find(Format("{}/{}.{}", kDefinitions, target.plural, group));
  if (definition == nullptr) return std::nullopt;
  for (const json& version : definition->at("spec").at("versions")) {
    if (version.at("name") != target.group_version.substr(slash + 1)) continue;
    return Kind{.name = definition->at("spec").at("names").at("kind"),
                .status_door = version.contains("/subresources/status"_json_pointer),
                .definition = version};
  }
  return std::nullopt;
}

HttpResponse MemoryApiServer::Get(const RequestTarget& target) const {
  const Object object = Find(target.Path());
  if (object == nullptr) return NotFound(target);
  if (target.subresource != "scale") return Ok(*object);
  const auto kind = KindOf(target);
  if (!kind->definition || !kind->definition->contains("/subresources/scale"_json_pointer)) {
    return NotFound(target);
  }
  const json& scale = kind->definition->at("subresources").at("scale");
  return Ok(
      {{"kind", "Scale"},
       {"metadata", object->at("metadata")},
       {"spec", {{"replicas", object->value(PointerTo(scale.at("specReplicasPath")), 0)}}},
       {"status", {{"replicas", object->value(PointerTo(scale.at("statusReplicasPath")), 0)}}}});
}

HttpResponse MemoryApiServer::List(const RequestTarget& target) const {
  const std::string from = target.Query("continue");
  const std::size_t limit = ParseVersion(target.Query("limit")).value_or(0);
  json list = {{"kind", KindOf(target)->name + "List"},
               {"metadata", {{"resourceVersion", std::to_string(version_)}}},
               {"items", json::array()}};
  for (const auto& [path, object] : objects_) {
    if (path <= from || !IsIn(target.Collection(), path) || !Chosen(target, *object)) continue;
    if (limit > 0 && list["items"].size() == limit) {
      const json& last = list["items"].back().at("metadata");
      RequestTarget of_last = target;
      of_last.ns = last.value("namespace", "");
      of_last.name = last.at("name");
      list["metadata"]["continue"] = of_last.Path();
      break;
    }
    list["items"].push_back(*object);
  }
  return Ok(list);
}

HttpResponse MemoryApiServer::Create(const RequestTarget& collection, json object) {
  RequestTarget target = collection;
  target.name = object.value("/metadata/name"_json_pointer, "");
  if (target.name.empty()) {
    return Wrong(target, {"metadata.name", "Required value: name or generateName is required"});
  }
  const std::string path = target.Path();
  const Kind kind = *KindOf(target);
  if (kind.status_door) object.erase("status");
  if (mutate) mutate(path, object);
  if (refuse) {
    if (const std::string why = refuse(path, object); !why.empty()) {
      return Refuse(403, "Forbidden", why);
    }
  }
  if (const auto wrong = Conform(kind, nullptr, object)) return Wrong(target, *wrong);
  if (kind.name == "Pod") {
    if (const auto wrong = FindWrongFieldOfPod(object)) return Wrong(target, *wrong);
    object["status"]["phase"] = "Pending";
  }
  if (objects_.contains(path)) {
    return Refuse(409, "AlreadyExists",
                  Format("{} \"{}\" already exists", target.plural, target.name));
  }
  if (kind.name == "Pod") {
    if (const std::string why = ExceededQuota(target, object); !why.empty()) {
      return Refuse(403, "Forbidden", why);
    }
  }
  if (kind.name == "Service") {
    object["spec"]["clusterIP"] = Format("10.96.{}.{}", addresses_ / 250, addresses_ % 250 + 1);
    ++addresses_;
  }
  if (kind.name == "Secret") EncodeSecret(object);
  if (kind.name == "CustomResourceDefinition") {
    object["status"]["conditions"] = json::array({{{"type", "Established"}, {"status", "True"}}});
  }
  json& metadata = object["metadata"];
  metadata["creationTimestamp"] = Now();
  if (!target.ns.empty()) metadata["namespace"] = target.ns;
  if (target.Query("dryRun") == "All") return Ok(object, 201);
  Put(path, std::move(object));
  return Ok(*Find(path), 201);
}

// The GPUs of a pod that a quota counts: none once it has ended.
std::int64_t MemoryApiServer::CountedGpus(const json& pod) {
  const std::string phase = pod.value("/status/phase"_json_pointer, "");
  if (phase == "Succeeded" || phase == "Failed") return 0;
  std::int64_t gpus = 0;
  for (const json& container : pod.value("/spec/containers"_json_pointer, json::array())) {
    gpus += std::stoll(
        container.value("/resources/limits/nvidia.com~1gpu"_json_pointer, std::string("0")));
  }
  return gpus;
}

void MemoryApiServer::NoteRelease(const std::string& path, const Object& before,
                                  const Object& after) {
  if (quota_lag == Duration::zero() || before == nullptr || !path.contains("/pods/")) return;
  const std::int64_t released = CountedGpus(*before) - (after == nullptr ? 0 : CountedGpus(*after));
  if (released <= 0) return;
  released_[before->at("metadata").at("namespace")].emplace_back(
      Clock() + std::chrono::ceil<std::chrono::milliseconds>(quota_lag), released);
}

// The message of a server that refuses GPUs because of a quota; "" if it allows them.
std::string MemoryApiServer::ExceededQuota(const RequestTarget& target, const json& pod) const {
  constexpr const char* kResource = "requests.nvidia.com/gpu";
  const std::string of_namespace = "/api/v1/namespaces/" + target.ns;
  std::int64_t used = 0;
  for (const auto& [path, other] : All(of_namespace + "/pods")) used += CountedGpus(*other);
  if (const auto released = released_.find(target.ns); released != released_.end()) {
    for (const auto& [until, gpus] : released->second) used += Clock() < until ? gpus : 0;
  }
  for (const auto& [path, quota] : All(of_namespace + "/resourcequotas")) {
    const json hard = quota->value("/spec/hard"_json_pointer, json::object());
    if (!hard.contains(kResource)) continue;
    const std::int64_t most = std::stoll(hard.at(kResource).get<std::string>());
    const std::int64_t asked = CountedGpus(pod);
    if (asked == 0 || used + asked <= most) continue;
    return Format(
        "pods \"{}\" is forbidden: exceeded quota: {}, requested: {}={}, used: {}={}, limited: "
        "{}={}",
        target.name, quota->at("metadata").at("name").get<std::string>(), kResource, asked,
        kResource, used, kResource, most);
  }
  return "";
}

std::optional<WrongField> MemoryApiServer::Conform(const Kind& kind, const json* before,
                                                   json& object) {
  if (!kind.definition) return std::nullopt;
  const json& schema = kind.definition->at("schema").at("openAPIV3Schema");
  for (const char* part : {"spec", "status"}) {
    const auto of_part = schema.at("properties").find(part);
    if (object.contains(part) && of_part != schema.at("properties").end()) {
      PruneAndDefault(*of_part, object[part]);
    }
  }
  return FindWrongField(schema, object, before);
}

HttpResponse MemoryApiServer::Update(const RequestTarget& target, json object) {
  if (Find(target.Path()) == nullptr) return NotFound(target);
  return Replace(target, *KindOf(target), std::move(object));
}

HttpResponse MemoryApiServer::Patch(const RequestTarget& target, const json& patch) {
  const Kind kind = *KindOf(target);
  const Object found = Find(target.Path());
  if (found == nullptr) return NotFound(target);
  if (target.subresource == "scale") return PatchScale(target, kind, patch);
  json object = *found;
  object.merge_patch(patch);
  return Replace(target, kind, std::move(object));
}

HttpResponse MemoryApiServer::PatchScale(const RequestTarget& target, const Kind& kind,
                                         const json& patch) {
  const json& scale = kind.definition->at("subresources").at("scale");
  json object = *Find(target.Path());
  object[PointerTo(scale.at("specReplicasPath"))] = patch.at("spec").at("replicas");
  RequestTarget main = target;
  main.subresource.clear();
  const HttpResponse replaced = Replace(main, kind, std::move(object));
  return replaced.status == 200 ? Get(target) : replaced;
}

// `object` is the new content, with the metadata on which the write is conditional.
HttpResponse MemoryApiServer::Replace(const RequestTarget& target, const Kind& kind, json object) {
  const std::string path = target.Path();
  const json& before = *Find(path);
  if (const auto unmet = Unmet(object.value("metadata", json::object()), before)) {
    return Conflict(target, *unmet);
  }
  const bool status_door = target.subresource == "status";
  json after = status_door ? before : std::move(object);
  if (status_door) {
    after["status"] = object.value("status", json::object());
  } else if (kind.status_door) {
    after.erase("status");
    if (before.contains("status")) after["status"] = before["status"];
  }
  if (kind.name == "Secret") EncodeSecret(after);
  for (const char* kept : {"uid", "creationTimestamp", "deletionTimestamp", "name", "namespace",
                           "generation", "resourceVersion"}) {
    after["metadata"].erase(kept);
    if (before["metadata"].contains(kept)) after["metadata"][kept] = before["metadata"][kept];
  }
  if (const auto wrong = Conform(kind, &before, after)) return Wrong(target, *wrong);
  if (kind.name == "Pod" && !status_door) {
    if (const auto wrong = FindForbiddenChangeOfPod(before, after)) return Wrong(target, *wrong);
  }
  if (target.Query("dryRun") == "All") return Ok(after);
  if (after == before) return Ok(before);  // an unchanged object gets no new version
  if (after.value("spec", json()) != before.value("spec", json())) {
    after["metadata"]["generation"] = before["metadata"].value("generation", 0) + 1;
  }
  Store(path, after);
  const Object kept = Find(path);
  return Ok(kept == nullptr ? after : *kept);  // it may have waited for its last finalizer
}

HttpResponse MemoryApiServer::Delete(const RequestTarget& target, const json& options) {
  const Object found = Find(target.Path());
  if (found == nullptr) return NotFound(target);
  if (const auto unmet = Unmet(options.value("preconditions", json::object()), *found)) {
    return Conflict(target, *unmet);
  }
  if (!options.contains("dryRun")) DeleteObject(target.Path(), options);
  return Ok({{"kind", "Status"}, {"status", "Success"}});
}

void MemoryApiServer::DeleteObject(const std::string& path, const json& options) {
  const Object object = Find(path);
  const bool pod = path.find("/pods/") != std::string::npos;
  const auto asked = options.contains("gracePeriodSeconds")
                         ? std::optional<int>(options["gracePeriodSeconds"].get<int>())
                         : std::nullopt;
  const int grace = pod ? GraceOf(*object, asked) : 0;
  const std::string policy = options.value("propagationPolicy", "");
  const char* waits_for = policy == "Foreground" ? kForeground : policy == "Orphan" ? kOrphan : "";
  const json& metadata = object->at("metadata");
  if (grace == 0 && *waits_for == '\0' && FinalizersOf(*object).empty()) {
    Remove(path);
    return;
  }
  const bool shorter =
      grace < metadata.value("deletionGracePeriodSeconds", std::numeric_limits<int>::max());
  if (metadata.contains("deletionTimestamp") && (!pod || !shorter)) return;
  Change(path, [&](json& changed) {
    json& to = changed["metadata"];
    if (!to.contains("deletionTimestamp")) to["deletionTimestamp"] = Now();
    if (grace > 0) to["deletionGracePeriodSeconds"] = grace;
    if (*waits_for != '\0') to["finalizers"].push_back(waits_for);
  });
}

bool MemoryApiServer::CollectGarbage() {
  const std::lock_guard lock(mutex_);
  bool collected = false;
  while (CollectOnce()) collected = true;
  return collected;
}

// Removes the references to owners whose deletion is to leave their dependents alone.
bool MemoryApiServer::OrphanOnce() {
  for (const auto& [owner_path, owner] : objects_) {
    if (!HasFinalizer(*owner, kOrphan)) continue;
    const std::string path = owner_path;
    const json uid = owner->at("metadata").at("uid");
    std::vector<std::string> dependents;
    for (const auto& [dependent, object] : objects_) {
      const json owners = object->at("metadata").value("ownerReferences", json::array());
      const bool is_owned = std::ranges::any_of(
          owners, [&](const json& reference) { return reference.at("uid") == uid; });
      if (is_owned) dependents.push_back(dependent);
    }
    for (const std::string& dependent : dependents) {
      Change(dependent, [&](json& object) {
        auto& owners = object["metadata"]["ownerReferences"].get_ref<json::array_t&>();
        std::erase_if(owners, [&](const json& reference) { return reference.at("uid") == uid; });
        if (owners.empty()) object["metadata"].erase("ownerReferences");
      });
    }
    Change(path, [](json& object) {
      auto& finalizers = object["metadata"]["finalizers"].get_ref<json::array_t&>();
      std::erase(finalizers, json(kOrphan));
    });
    return true;
  }
  return false;
}

bool MemoryApiServer::CollectOnce() {
  if (OrphanOnce()) return true;
  std::set<std::string> uids;
  std::set<std::string> ending;  // owners that wait for the deletion of their dependents
  for (const auto& [path, object] : objects_) {
    const std::string uid = object->at("metadata").at("uid");
    (IsForeground(*object) ? ending : uids).insert(uid);
  }
  std::set<std::string> with_dependents;
  std::vector<std::string> orphans;
  for (const auto& [path, object] : objects_) {
    const json owners = object->at("metadata").value("ownerReferences", json::array());
    if (owners.empty()) continue;
    bool alive = false;
    for (const json& owner : owners) {
      alive = alive || uids.contains(owner.at("uid"));
      if (ending.contains(owner.at("uid"))) with_dependents.insert(owner.at("uid"));
    }
    const bool deleting = object->at("metadata").contains("deletionTimestamp");
    if (!alive && !deleting) orphans.push_back(path);
  }
  for (const std::string& path : orphans) DeleteObject(path, json::object());
  std::vector<std::string> ended;
  for (const auto& [path, object] : objects_) {
    const bool waits = with_dependents.contains(object->at("metadata").at("uid"));
    if (IsForeground(*object) && !waits) ended.push_back(path);
  }
  for (const std::string& path : ended) {
    Change(path, [](json& object) {
      auto& finalizers = object["metadata"]["finalizers"].get_ref<json::array_t&>();
      std::erase(finalizers, json(kForeground));
    });
  }
  return !orphans.empty() || !ended.empty();
}

MemoryApiServer::Object MemoryApiServer::Find(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(path);
  return found == objects_.end() ? nullptr : found->second;
}

std::vector<std::pair<std::string, MemoryApiServer::Object>> MemoryApiServer::All(
    const std::string& collection) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, Object>> found;
  for (const auto& [path, object] : objects_) {
    if (IsIn(collection, path)) found.emplace_back(path, object);
  }
  return found;
}

void MemoryApiServer::Put(const std::string& path, json object) {
  const std::lock_guard lock(mutex_);
  json& metadata = object["metadata"];
  metadata["uid"] = NewUid();
  metadata["generation"] = 1;
  if (!metadata.contains("creationTimestamp")) metadata["creationTimestamp"] = Now();
  Store(path, std::move(object));
}

void MemoryApiServer::Change(const std::string& path, const std::function<void(json&)>& change) {
  const std::lock_guard lock(mutex_);
  const Object before = Find(path);
  if (before == nullptr) return;
  json object = *before;
  change(object);
  if (object == *before) return;
  if (object.value("spec", json()) != before->value("spec", json())) {
    object["metadata"]["generation"] = object["metadata"].value("generation", 0) + 1;
  }
  Store(path, std::move(object));
}

void MemoryApiServer::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(path);
  if (found == objects_.end()) return;
  const Object before = found->second;
  objects_.erase(found);
  Tell(path, before, nullptr, ++version_);
}

void MemoryApiServer::Store(const std::string& path, json object) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  Object& kept = objects_[path];
  const Object before = kept;
  if (before != nullptr && IsReleased(*before, object)) {
    Remove(path);
    return;
  }
  kept = std::make_shared<const json>(std::move(object));
  Tell(path, before, kept, version_);
}

void MemoryApiServer::Tell(const std::string& path, Object before, Object after,
                           std::int64_t version) {
  NoteRelease(path, before, after);
  events_.push_back({version, path, std::move(before), after});
  if (events_.size() > options_.history) {
    forgotten_ = events_.front().version;
    events_.pop_front();
  }
  changed_.notify_all();
  if (on_change) on_change(path, after);
}

void MemoryApiServer::ForgetHistory() {
  const std::lock_guard lock(mutex_);
  events_.clear();
  forgotten_ = version_;
}

std::string MemoryApiServer::Now() const { return api::FormatTime(Clock()); }

api::WallTime MemoryApiServer::Clock() const {
  if (options_.now) return options_.now();
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// Multiplies, so that the first digits of uids differ: names are made of them.
std::string MemoryApiServer::NewUid() {
  const auto mixed = static_cast<std::uint32_t>(++uids_ * 2654435761);
  return Format("{:08x}-0000-4000-8000-{:012x}", mixed, uids_);
}

std::string MemoryApiServer::Bookmark(const RequestTarget& target, std::int64_t version,
                                      json annotations) const {
  json metadata = {{"resourceVersion", std::to_string(version)}};
  if (!annotations.empty()) metadata["annotations"] = std::move(annotations);
  return Line("BOOKMARK", {{"kind", KindOf(target)->name}, {"metadata", std::move(metadata)}});
}

std::vector<std::string> MemoryApiServer::InitialLines(const RequestTarget& target) const {
  std::vector<std::string> lines;
  for (const auto& [path, object] : objects_) {
    if (IsIn(target.Collection(), path) && Chosen(target, *object)) {
      lines.push_back(Line("ADDED", *object));
    }
  }
  lines.push_back(Bookmark(target, version_, {{"k8s.io/initial-events-end", "true"}}));
  return lines;
}

std::optional<std::vector<std::string>> MemoryApiServer::LinesSince(const RequestTarget& target,
                                                                    std::int64_t& version) const {
  if (version < forgotten_) return std::nullopt;
  std::vector<std::string> lines;
  const auto first = std::ranges::upper_bound(events_, version, {}, &Event::version);
  for (auto event = first; event != events_.end(); ++event) {
    if (!IsIn(target.Collection(), event->path)) continue;
    const bool was = event->before != nullptr && Chosen(target, *event->before);
    const bool is = event->after != nullptr && Chosen(target, *event->after);
    if (is) {
      lines.push_back(Line(was ? "MODIFIED" : "ADDED", *event->after));
    } else if (was) {
      json last = *event->before;
      last["metadata"]["resourceVersion"] = std::to_string(event->version);
      lines.push_back(Line("DELETED", last));
    }
  }
  version = version_;
  return lines;
}

Result<HttpResponse> MemoryApiServer::Stream(const HttpRequest& request, const LineSink& sink,
                                             Duration idle, std::stop_token stop) {
  const auto target = ParseTarget(request.target);
  std::unique_lock lock(mutex_);
  const auto token = request.headers.find("Authorization");
  if (!options_.token.empty() &&
      (token == request.headers.end() || token->second != "Bearer " + options_.token)) {
    return Refuse(401, "Unauthorized", "Unauthorized");
  }
  if (!target || !KindOf(*target)) {
    return Refuse(404, "NotFound", "the server could not find the requested resource");
  }
  const bool initial_events = target->Query("sendInitialEvents") == "true";
  if (initial_events && !options_.streams_lists) {
    return Refuse(422, "Invalid",
                  "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless "
                  "the WatchList feature gate is enabled");
  }
  if (initial_events && target->Query("resourceVersionMatch") != "NotOlderThan") {
    return Refuse(422, "Invalid",
                  "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
                  "resourceVersionMatch to NotOlderThan");
  }
  if (request.on_open) {
    lock.unlock();
    request.on_open();
    lock.lock();
  }
  std::int64_t version = ParseVersion(target->Query("resourceVersion")).value_or(version_);
  const auto seconds = ParseVersion(target->Query("timeoutSeconds")).value_or(300);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto give = [&](const std::string& line) {
    lock.unlock();
    const bool more = sink(line);
    lock.lock();
    return more;
  };
  if (initial_events) {
    version = version_;
    for (const std::string& line : InitialLines(*target)) {
      if (!give(line)) return HttpResponse{.status = 200, .headers = {}, .body = {}};
    }
  }
  while (true) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
    const auto lines = LinesSince(*target, version);
    if (!lines) {
      give(Line("ERROR", StatusObject(410, "Expired", "too old resource version")));
      return HttpResponse{.status = 200, .headers = {}, .body = {}};
    }
    for (const std::string& line : *lines) {
      if (!give(line)) return HttpResponse{.status = 200, .headers = {}, .body = {}};
    }
    if (!options_.watches_wait || std::chrono::steady_clock::now() >= end) {
      if (target->Query("allowWatchBookmarks") == "true") give(Bookmark(*target, version));
      return HttpResponse{.status = 200, .headers = {}, .body = {}};
    }
    const auto quiet = std::chrono::steady_clock::now() + idle;
    if (!changed_.wait_until(lock, stop, std::min(end, quiet),
                             [&] { return version_ != version; }) &&
        quiet < end && !stop.stop_requested()) {
      return Fail(ErrorCode::kTimeout, "nothing came for too long");
    }
  }
}

}  // namespace pliant::kube
