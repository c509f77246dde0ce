#include "tests/simulation/operator/cluster.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/format.h"
#include "operator/controller/model/names.h"
#include "operator/controller/objects/placeholder_pod.h"
#include "tests/simulation/operator/objects.h"

namespace pliant::operator_sim {
namespace {

using namespace std::chrono_literals;

std::string NodePath(const std::string& name) { return "/api/v1/nodes/" + name; }

bool IsDeleting(const Json& object) { return object.at("metadata").contains("deletionTimestamp"); }

std::string PhaseOf(const Json& pod) { return pod.value("/status/phase"_json_pointer, ""); }

std::string BoundTo(const Json& pod) { return pod.value("/spec/nodeName"_json_pointer, ""); }

std::string ContainerOf(const Json& pod) { return IsLearner(pod) ? "learner" : "coordinator"; }

constexpr int kCpusOfNode = 64;

int CpusAskedBy(const Json& pod) {
  return std::stoi(
      pod.value("/spec/containers/0/resources/requests/cpu"_json_pointer, std::string("0")));
}

Json Statuses(const Json& pod, Json state) {
  return Json::array({{{"name", ContainerOf(pod)}, {"state", std::move(state)}}});
}

}  // namespace

Duration Between(Random& random, Duration least, Duration most) {
  const auto span = static_cast<std::uint64_t>((most - least).count()) + 1;
  return least + Duration(static_cast<Duration::rep>(random() % span));
}

bool Chance(Random& random, double probability) {
  return std::uniform_real_distribution()(random) < probability;
}

std::string LabelOf(const Json& object, std::string_view label) {
  const Json& metadata = object.at("metadata");
  const auto labels = metadata.find("labels");
  return labels == metadata.end() ? "" : labels->value(std::string(label), "");
}

bool IsLearner(const Json& pod) {
  return LabelOf(pod, controller::kLabelRole) == controller::kRoleLearner;
}

bool IsPlaceholder(const Json& pod) { return !LabelOf(pod, controller::kLabelNodesFor).empty(); }

bool TakesGpus(const Json& pod) { return !IsLearner(pod) && RequestedGpus(pod) > 0; }

int RequestedGpus(const Json& pod) {
  return std::stoi(pod.value("/spec/containers/0/resources/limits/nvidia.com~1gpu"_json_pointer,
                             std::string("0")));
}

bool IsUnschedulable(const Json& pod) {
  const Json conditions = pod.value("/status/conditions"_json_pointer, Json::array());
  return BoundTo(pod).empty() && std::ranges::any_of(conditions, [](const Json& condition) {
           return condition.value("reason", "") == "Unschedulable";
         });
}

bool IsDaemon(const Json& pod) {
  const Json owners = pod.at("metadata").value("ownerReferences", Json::array());
  return std::ranges::any_of(
      owners, [](const Json& owner) { return owner.value("kind", "") == "DaemonSet"; });
}

bool IsGated(const Json& pod) {
  return !pod.value("/spec/schedulingGates"_json_pointer, Json::array()).empty();
}

bool HasEnded(const Json& pod) { return PhaseOf(pod) == "Succeeded" || PhaseOf(pod) == "Failed"; }

// A node's hostname need not be its name.
constexpr std::string_view kDomain = ".internal";

std::string NodeOf(const Json& pod) {
  const std::string bound = BoundTo(pod);
  if (!bound.empty()) return bound;
  if (IsDaemon(pod)) {
    return pod.at(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
        "nodeSelectorTerms/0/matchFields/0/values/0"_json_pointer);
  }
  const auto hostname = pod.value(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
      "nodeSelectorTerms/0/matchExpressions/0/values/0"_json_pointer,
      std::string());
  return hostname.substr(0, hostname.rfind(kDomain));
}

Cluster::Cluster(EventLoop& loop, kube::MemoryApiServer& server, Random& random)
    : loop_(loop), server_(server), random_(random) {}

void Cluster::AddNode(const std::string& name, int gpus) {
  nodes_[name] = {.gpus = gpus};
  WriteNode(name);
}

std::vector<std::string> Cluster::NodeNames() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) names.push_back(name);
  return names;
}

// Writes the status that the kubelet would, or, when the kubelet is silent, the node controller.
void Cluster::WriteNode(const std::string& name) {
  const Node& node = nodes_.at(name);
  const Json status = {
      {"allocatable",
       {{"cpu", std::to_string(kCpusOfNode)},
        {"memory", "64Gi"},
        {"nvidia.com/gpu", std::to_string(node.gpus - node.unhealthy)}}},
      {"conditions", Json::array({{{"type", "Ready"}, {"status", node.on ? "True" : "Unknown"}}})}};
  if (server_.Find(NodePath(name)) == nullptr) {
    server_.Put(
        NodePath(name),
        {{"metadata",
          {{"name", name}, {"labels", {{"kubernetes.io/hostname", name + std::string(kDomain)}}}}},
         {"spec", Json::object()}});
  }
  server_.Change(NodePath(name), [&](Json& object) { object["status"] = status; });
}

void Cluster::PowerOff(const std::string& name) {
  Node& node = nodes_.at(name);
  if (!node.on) return;
  node.on = false;
  const int cycle = ++node.power_cycles;
  std::vector<std::string> dead;
  for (const auto& [path, program] : programs_) {
    if (program.alive && program.node == name) dead.push_back(path);
  }
  for (const std::string& path : dead) KillProgram(path);
  loop_.PostAfter(20s, [this, name, cycle] {
    const Node& still = nodes_.at(name);
    if (still.on || !still.known || still.power_cycles != cycle) return;
    WriteNode(name);
    loop_.PostAfter(30s, [this, name, cycle] {
      if (!nodes_.at(name).on && nodes_.at(name).power_cycles == cycle) EvictFrom(name);
    });
  });
}

void Cluster::EvictFrom(const std::string& node) {
  for (const auto& [path, pod] : server_.All(kPods)) {
    if (BoundTo(*pod) != node || IsDeleting(*pod) || HasEnded(*pod)) continue;
    server_.Change(path, [&](Json& object) {
      object["metadata"]["deletionTimestamp"] = object["metadata"]["creationTimestamp"];
      object["metadata"]["deletionGracePeriodSeconds"] = 30;
      object["status"]["conditions"].push_back(
          {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "DeletionByTaintManager"}});
    });
  }
}

void Cluster::PowerOn(const std::string& name) {
  Node& node = nodes_.at(name);
  if (node.on) return;
  node.on = true;
  node.known = true;
  WriteNode(name);
  for (const auto& [path, pod] : server_.All(kPods)) {
    if (NodeOf(*pod) == name) Look(path, 2s);
  }
}

void Cluster::RemoveNode(const std::string& name) {
  PowerOff(name);
  nodes_.at(name).known = false;
  server_.Remove(NodePath(name));
  // The garbage collector removes the pods of a removed node.
  loop_.PostAfter(Between(random_, 1s, 20s), [this, name] {
    if (nodes_.at(name).known) return;
    for (const auto& [path, pod] : server_.All(kPods)) {
      if (BoundTo(*pod) == name) server_.Remove(path);
    }
  });
}

void Cluster::SetCordoned(const std::string& name, bool cordoned) {
  server_.Change(NodePath(name), [&](Json& object) { object["spec"]["unschedulable"] = cordoned; });
}

void Cluster::SetUnhealthyGpus(const std::string& name, int count) {
  nodes_.at(name).unhealthy = std::min(count, nodes_.at(name).gpus);
  if (nodes_.at(name).on) WriteNode(name);
}

void Cluster::OnChange(const std::string& path, const kube::MemoryApiServer::Object& object) {
  if (!kube::IsIn(kPods, path)) return;
  if (object == nullptr) {
    KillProgram(path);
    programs_.erase(path);
  } else {
    Look(path, 200ms);
  }
}

void Cluster::Look(const std::string& pod, Duration most) {
  loop_.PostAfter(Between(random_, 1ms, most), [this, pod] { Sync(pod); });
}

void Cluster::Sync(const std::string& path) {
  const auto pod = server_.Find(path);
  if (pod == nullptr || IsGated(*pod)) return;
  if (BoundTo(*pod).empty()) {
    Bind(path, *pod);
  } else if (!nodes_.at(BoundTo(*pod)).on) {
    return;
  } else if (IsDeleting(*pod)) {
    Terminate(path, *pod);
  } else if (!HasEnded(*pod)) {
    Start(path, *pod);
  }
}

void Cluster::Bind(const std::string& path, const Json& pod) {
  if (IsDeleting(pod)) return;
  std::string chosen;
  for (const auto& [name, node] : nodes_) {
    const auto object = server_.Find(NodePath(name));
    if (object == nullptr || object->value("/spec/unschedulable"_json_pointer, false)) continue;
    if (object->at("/status/conditions/0/status"_json_pointer) != "True") continue;
    if (!HasRoom(name, pod)) continue;
    const bool is_pinned = IsLearner(pod) || IsDaemon(pod);
    if (is_pinned ? NodeOf(pod) == name : chosen.empty() || Chance(random_, 0.5)) chosen = name;
  }
  if (chosen.empty()) {
    if (TakesGpus(pod) || IsDaemon(pod)) MarkUnschedulable(path, pod);
    loop_.PostAfter(1s, [this, path, uid = UidOf(pod)] {
      const auto still = server_.Find(path);
      if (still != nullptr && UidOf(*still) == uid && BoundTo(*still).empty()) Sync(path);
    });
    return;
  }
  server_.Change(path, [&](Json& object) { object["spec"]["nodeName"] = chosen; });
}

void Cluster::MarkUnschedulable(const std::string& path, const Json& pod) {
  if (IsUnschedulable(pod)) return;
  server_.Change(path, [](Json& object) {
    object["status"]["conditions"] =
        Json::array({{{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}});
  });
}

int Cluster::GpusTakenOn(const std::string& node, bool (*is_of_kind)(const Json& pod)) const {
  int taken = 0;
  for (const auto& [path, pod] : server_.All(kPods)) {
    if (BoundTo(*pod) == node && is_of_kind(*pod) && !HasEnded(*pod)) taken += RequestedGpus(*pod);
  }
  return taken;
}

// Whether the scheduler finds room: no pod preempts another. It may bind learners beyond the GPUs
// that are left, because it does not know of a GPU that is broken since a moment ago.
bool Cluster::HasRoom(const std::string& node, const Json& pod) const {
  if (IsDaemon(pod)) return CpusAskedBy(pod) <= kCpusOfNode;
  if (!IsLearner(pod) && !TakesGpus(pod)) return true;
  const int others = GpusTakenOn(node, TakesGpus);
  if (IsLearner(pod) && others == 0) return true;
  const Node& of = nodes_.at(node);
  return others + GpusTakenOn(node, IsLearner) + RequestedGpus(pod) <= of.gpus - of.unhealthy;
}

void Cluster::Start(const std::string& path, const Json& pod) {
  const std::string uid = UidOf(pod);
  if (TakesGpus(pod) || IsDaemon(pod)) {
    if (PhaseOf(pod) != "Running") {
      server_.Change(path, [](Json& object) { object["status"]["phase"] = "Running"; });
    }
    return;
  }
  Program& program = programs_[path];
  if (program.uid == uid && (program.alive || program.pulling)) return;
  const bool ran = PhaseOf(pod) == "Running";
  if (IsLearner(pod) && ran) {
    Fail(path, "", "");
    return;
  }
  const Node& node = nodes_.at(BoundTo(pod));
  if (IsLearner(pod) &&
      (GpusTakenOn(BoundTo(pod), IsLearner) > node.gpus - node.unhealthy || refuse_start())) {
    Fail(path, "UnexpectedAdmissionError", "requested number of devices unavailable");
    return;
  }
  program = {.uid = uid,
             .node = BoundTo(pod),
             .address = ran ? program.address
                            : Format("10.1.{}.{}", addresses_ / 250, addresses_ % 250 + 1)};
  if (!ran) ++addresses_;
  Pull(path, uid);
}

// Retries until the image is available.
void Cluster::Pull(const std::string& path, const std::string& uid) {
  const auto found = programs_.find(path);
  if (found == programs_.end() || found->second.uid != uid) return;
  const auto pod = server_.Find(path);
  if (has_images && (pod == nullptr || has_image(*pod))) {
    found->second.pulling = false;
    loop_.PostAfter(Between(random_, 200ms, 2s), [this, path, uid] { SetRunning(path, uid); });
    return;
  }
  loop_.PostAfter(Between(random_, 2s, 20s), [this, path, uid] { Pull(path, uid); });
  if (std::exchange(found->second.pulling, true)) return;
  server_.Change(path, [](Json& object) {
    object["status"]["containerStatuses"] =
        Statuses(object, {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}});
  });
}

void Cluster::SetRunning(const std::string& path, const std::string& uid) {
  const auto found = programs_.find(path);
  const auto pod = server_.Find(path);
  if (found == programs_.end() || found->second.uid != uid || found->second.alive) return;
  if (pod == nullptr || UidOf(*pod) != uid || HasEnded(*pod) || IsDeleting(*pod)) return;
  if (!nodes_.at(found->second.node).on) return;
  found->second.alive = true;
  server_.Change(path, [&](Json& object) {
    object["status"]["phase"] = "Running";
    object["status"]["podIP"] = found->second.address;
    object["status"]["containerStatuses"] = Statuses(object, {{"running", Json::object()}});
  });
  on_start(path);
}

void Cluster::Terminate(const std::string& path, const Json& pod) {
  const auto found = programs_.find(path);
  const bool alive = found != programs_.end() && found->second.alive;
  if (!alive || HasEnded(pod)) {
    server_.Remove(path);
    return;
  }
  if (std::exchange(found->second.signalled, true)) return;
  const int grace = pod.at("metadata").value("deletionGracePeriodSeconds", 30);
  loop_.PostAfter(std::chrono::seconds(grace), [this, path, uid = found->second.uid] {
    const auto still = programs_.find(path);
    if (still != programs_.end() && still->second.uid == uid) EndProgram(path, 137, Json());
  });
  on_stop_signal(path);
}

void Cluster::Fail(const std::string& path, const std::string& reason, const std::string& message) {
  server_.Change(path, [&](Json& object) {
    object["status"]["phase"] = "Failed";
    if (!reason.empty()) {
      object["status"]["reason"] = reason;
      object["status"]["message"] = message;
      return;
    }
    object["status"]["containerStatuses"] = Statuses(
        object, {{"terminated", {{"exitCode", 137}, {"reason", "ContainerStatusUnknown"}}}});
  });
}

void Cluster::EndProgram(const std::string& pod, int exit_code, const Json& last_words,
                         const std::string& reason) {
  if (!Runs(pod)) return;
  KillProgram(pod);
  const auto object = server_.Find(pod);
  if (object == nullptr) return;
  if (!IsLearner(*object)) {
    Look(pod, 2s);  // the pod is removed if it is being deleted; otherwise the container restarts
    return;
  }
  server_.Change(pod, [&](Json& changed) {
    changed["status"]["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
    changed["status"]["containerStatuses"] =
        Statuses(changed, {{"terminated",
                            {{"exitCode", exit_code},
                             {"reason", reason},
                             {"message", last_words.is_null() ? "" : last_words.dump()}}}});
  });
}

void Cluster::CrashProgram(const std::string& pod) { EndProgram(pod, 1, Json()); }

void Cluster::KillProgram(const std::string& path) {
  const auto found = programs_.find(path);
  if (found == programs_.end() || !std::exchange(found->second.alive, false)) return;
  on_end(path);
}

bool Cluster::Runs(const std::string& pod) const {
  const auto found = programs_.find(pod);
  return found != programs_.end() && found->second.alive;
}

std::string Cluster::AddressOf(const std::string& pod) const { return programs_.at(pod).address; }

std::optional<std::string> Cluster::PodAt(const std::string& address) const {
  for (const auto& [path, program] : programs_) {
    if (program.address == address && program.alive) return path;
  }
  return std::nullopt;
}

}  // namespace pliant::operator_sim
