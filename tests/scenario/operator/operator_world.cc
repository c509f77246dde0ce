#include "tests/scenario/operator/operator_world.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "operator/controller/names.h"
#include "tests/unit/certificate_names.h"

namespace pliant {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kNs = "team-a";
constexpr milliseconds kWatchDelay{20};
constexpr milliseconds kCallTime{5};
constexpr milliseconds kStartTime{400};
constexpr milliseconds kStepTime{150};

json MinimalSpec() {
  return json::parse(R"({
    "priority": 5000, "suspend": false,
    "elastic": {"minLearners": 1, "maxLearners": 8, "gpusPerLearner": 1},
    "training": {"globalBatchSize": 256, "logicalShards": 32},
    "checkpoint": {"volume": {"hostPath": {"path": "/data"}}},
    "resize": {"gracePeriodSeconds": 60, "cooldownSeconds": 0},
    "failurePolicy": {"maxFailures": 10, "permanentExitCodes": [2]},
    "template": {"spec": {"containers": [{"name": "learner", "image": "x"}]}}})");
}

std::string LabelOf(const json& pod, std::string_view label) {
  return pod.at("metadata").value("labels", json::object()).value(std::string(label), "");
}

bool IsEnded(const json& pod) {
  const std::string phase = pod.at("status").value("phase", "");
  return phase == "Succeeded" || phase == "Failed";
}

bool IsGated(const json& pod) { return !pod.at("spec").value("schedulingGates", json()).empty(); }

std::string PinnedNode(const json& pod) {
  return pod.value(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
      "/0/matchFields/0/values/0"_json_pointer,
      "");
}

template <typename T>
typename kube::Store<T>::Item ItemOf(const json& object, Result<T> decoded) {
  EXPECT_TRUE(decoded) << decoded.error();
  return {.meta = kube::MetaOf(object), .value = std::make_shared<const T>(*std::move(decoded))};
}

}  // namespace

// What a process of the operator holds.
struct OperatorWorld::Operator {
  kube::Store<api::ElasticTrainingJob> jobs;
  kube::Store<api::Pod> pods;
  kube::Store<api::Node> nodes;
  kube::Store<api::Service> services;
  kube::Store<api::ResourceQuota> quotas;
  controller::JobTable table{{jobs, pods, nodes, services, quotas}};
  metrics::Metrics metrics;
  std::unique_ptr<controller::ActionRunner> runner;
  std::unique_ptr<controller::PlanningLoop> planning;
};

// Coordinators that do what the contract says, without learners that talk to them: a learner whose
// pod runs is ready, one that leaves ends its pod at the next step.
class OperatorWorld::Coordinators final : public controller::CoordinatorClient {
 public:
  explicit Coordinators(OperatorWorld& world) : world_(world) {}

  Result<controller::Progress> PutPlan(const controller::CoordinatorAddress& address,
                                       const controller::CoordinatorPlan& plan) override {
    Job* job = Find(address);
    if (job == nullptr) return Fail(ErrorCode::kUnavailable, "connection refused");
    if (job->accepted && plan.stamp < *job->accepted) {
      return Fail(ErrorCode::kConflict, "a greater plan was taken");
    }
    job->accepted = plan.stamp;
    job->plan = plan.learners;
    Advance(address.job_uid);
    return Report(*job);
  }

  Result<controller::Progress> GetProgress(const controller::CoordinatorAddress& address) override {
    Job* job = Find(address);
    if (job == nullptr) return Fail(ErrorCode::kUnavailable, "connection refused");
    return Report(*job);
  }

  void Forget(const std::string& job_uid) override { jobs_.erase(job_uid); }

  // A pod changed: who may be a member may have, too.
  void Advance(const std::string& job_uid) {
    world_.loop.PostAfter(kStepTime, [this, job_uid] { Step(job_uid); });
  }

 private:
  struct Job {
    std::int64_t term = 0;
    std::string name;
    std::optional<controller::PlanStamp> accepted;
    std::vector<controller::PlannedLearner> plan;
    std::vector<std::string> members;
    std::int64_t counter = 0;
  };

  Job* Find(const controller::CoordinatorAddress& address) {
    for (const auto& [path, pod] : world_.server.All("pods")) {
      const bool runs = pod.at("status").value("phase", "") == "Running";
      if (!runs || pod.at("status").value("podIP", "") != address.host) continue;
      EXPECT_EQ(LabelOf(pod, controller::kLabelCredentials), "2") << "it cannot prove its job";
      Job& job = jobs_[address.job_uid];
      const std::int64_t term = std::stoll(LabelOf(pod, controller::kLabelTerm));
      if (job.term != term) {
        // It rebuilds its state from the learners that say hello.
        job = {.term = term, .name = LabelOf(pod, controller::kLabelJob), .members = job.members};
        Advance(address.job_uid);
      }
      return &job;
    }
    return nullptr;
  }

  std::string PathOf(const std::string& pod) const {
    return std::string("/api/v1/namespaces/") + kNs + "/pods/" + pod;
  }

  bool Runs(const std::string& name) const {
    const json* pod = world_.server.Find(PathOf(name));
    return pod != nullptr && pod->at("status").value("phase", "") == "Running";
  }

  void Step(const std::string& job_uid) {
    Job& job = jobs_[job_uid];
    std::vector<std::string> members, leavers;
    for (const controller::PlannedLearner& learner : job.plan) {
      if (!Runs(learner.name)) continue;
      if (learner.state == controller::LearnerWish::kWanted) members.push_back(learner.name);
      if (learner.state == controller::LearnerWish::kLeaving) leavers.push_back(learner.name);
    }
    if (!job.accepted) {  // it removes nobody on its own
      for (const std::string& member : job.members) {
        if (Runs(member)) members.push_back(member);
      }
    }
    if (members != job.members) {
      job.members = members;
      ++job.counter;
    }
    for (const std::string& leaver : leavers) world_.EndPod(PathOf(leaver), 0, "Drained");
  }

  controller::Progress Report(const Job& job) {
    controller::Progress progress{
        .term = job.term,
        .state = job.members.empty() ? controller::CoordinatorState::kWaiting
                                     : controller::CoordinatorState::kRunning,
        .membership_id = std::to_string(job.term) + "." + std::to_string(job.counter),
        .members = job.members,
        .plan_accepted = job.accepted};
    Training& training = world_.trainings_[job.name];
    if (training.complete) {
      progress.state = controller::CoordinatorState::kCompleted;
      progress.parameters_sha256 = "abc";
    }
    if (!job.members.empty()) {
      progress.step = ++training.step;
      progress.total_steps = 1'000'000;
      progress.learners_asked = world_.learners_asked;
    }
    for (const std::string& member : job.members) {
      const json* pod = world_.server.Find(PathOf(member));
      progress.learners.push_back(
          {.name = member,
           .pod_uid = pod != nullptr ? pod->at("metadata").at("uid").get<std::string>() : "gone",
           .state = "Member"});
    }
    return progress;
  }

  OperatorWorld& world_;
  std::map<std::string, Job> jobs_;  // by uid
};

OperatorWorld::OperatorWorld(std::map<std::string, int> gpus_of_nodes)
    : gpus_of_nodes_(std::move(gpus_of_nodes)),
      coordinators_(std::make_unique<Coordinators>(*this)),
      client_(server, kube::Config{.server = "https://fake"}, {.requests_per_second = 0}) {
  server.on_change = [this](const std::string& path, const json& object) {
    OnChange(path, object);
  };
  for (const auto& [name, gpus] : gpus_of_nodes_) {
    server.Put("/api/v1/nodes/" + name,
               {{"metadata", {{"name", name}}},
                {"status",
                 {{"allocatable",
                   {{"cpu", "64"}, {"memory", "64Gi"}, {"nvidia.com/gpu", std::to_string(gpus)}}},
                  {"conditions", json::array({{{"type", "Ready"}, {"status", "True"}}})}}}});
  }
}

OperatorWorld::~OperatorWorld() { KillOperator(); }

void OperatorWorld::LetWebhooksHang(bool hang) {
  webhooks_hang_ = hang;
  if (hang) return;
  for (const auto& go_on : std::exchange(held_by_webhooks_, {})) go_on();
}

controller::WallTime OperatorWorld::Now() const {
  return api::FromUnixSeconds(1'800'000'000) +
         std::chrono::floor<milliseconds>(loop.Now().time_since_epoch());
}

void OperatorWorld::StartOperator() {
  operator_ = std::make_unique<Operator>();
  ++operator_generation_;
  const controller::MasterKeys keys = *controller::MakeMasterKeys(Now());
  operator_->runner = std::make_unique<controller::ActionRunner>(
      client_, controller::PodDefaults{.priority_class = "learners"}, keys);
  const controller::Executor executor = [this, generation = operator_generation_](auto task) {
    loop.PostAfter(kCallTime, [this, generation, task] {
      if (generation == operator_generation_ && operator_) task();
    });
  };
  const controller::Executor pod_making = [this, executor](auto task) {
    if (webhooks_hang_) {
      held_by_webhooks_.push_back([executor, task] { executor(task); });
    } else {
      executor(std::move(task));
    }
  };
  operator_->planning = std::make_unique<controller::PlanningLoop>(
      controller::PlanningLoopParts{.loop = loop,
                                    .table = operator_->table,
                                    .runner = *operator_->runner,
                                    .api_calls = executor,
                                    .pod_making_calls = pod_making,
                                    .coordinator_calls = executor,
                                    .coordinators = *coordinators_,
                                    .metrics = operator_->metrics},
      controller::PlanningLoopOptions{
          .lifecycle = {.coordinator_image = "pliant:1"},
          .lease_transitions = ++operators_started_,
          .now = [this] { return Now(); },
          .on_event =
              [this](const api::ObjectMeta& job, const controller::JobEvent& event) {
                events.push_back(job.name + ": " + event.reason);
              }});
  Operator& op = *operator_;
  op.jobs.OnChange([&op](const auto& change) { op.planning->OnJobChange(change); });
  op.pods.OnChange([&op](const auto& change) { op.planning->OnPodChange(change); });
  op.nodes.OnChange([&op](const auto& change) { op.planning->OnNodeChange(change); });
  op.services.OnChange([&op](const auto& change) { op.planning->OnServiceChange(change); });
  std::vector<kube::Store<api::ElasticTrainingJob>::Item> jobs;
  std::vector<kube::Store<api::Pod>::Item> pods;
  std::vector<kube::Store<api::Node>::Item> nodes;
  std::vector<kube::Store<api::Service>::Item> services;
  for (const auto& [path, object] : server.All("elastictrainingjobs")) {
    jobs.push_back(ItemOf(object, api::DecodeJob(object, {})));
  }
  for (const auto& [path, object] : server.All("pods")) {
    pods.push_back(ItemOf(object, api::DecodePod(object, "nvidia.com/gpu")));
  }
  for (const auto& [path, object] : server.All("nodes")) {
    nodes.push_back(ItemOf(object, api::DecodeNode(object, "nvidia.com/gpu")));
  }
  for (const auto& [path, object] : server.All("services")) {
    services.push_back(ItemOf(object, api::DecodeService(object)));
  }
  op.jobs.ReplaceAll(std::move(jobs));
  op.pods.ReplaceAll(std::move(pods));
  op.nodes.ReplaceAll(std::move(nodes));
  op.services.ReplaceAll(std::move(services));
  op.quotas.ReplaceAll({});
}

void OperatorWorld::KillOperator() { operator_.reset(); }

std::string OperatorWorld::JobPath(const std::string& name) const {
  return std::string("/apis/pliant.dev/v1alpha1/namespaces/") + kNs + "/elastictrainingjobs/" +
         name;
}

std::string OperatorWorld::JobOf(const json& pod) const {
  return LabelOf(pod, controller::kLabelJob);
}

void OperatorWorld::SubmitJob(const std::string& name, const json& spec_changes) {
  json spec = MinimalSpec();
  if (!spec_changes.is_null()) spec.merge_patch(spec_changes);
  server.Put(JobPath(name),
             {{"metadata",
               {{"name", name}, {"namespace", kNs}, {"creationTimestamp", api::FormatTime(Now())}}},
              {"spec", std::move(spec)}});
}

void OperatorWorld::RemoveJob(const std::string& name) {
  server.Remove(JobPath(name));
  for (const char* kind : {"pods", "secrets", "services"}) {
    for (const auto& [path, object] : server.All(kind)) {
      if (LabelOf(object, controller::kLabelJob) == name) server.Remove(path);
    }
  }
}

void OperatorWorld::EditJob(const std::string& name, const json& spec_changes) {
  server.Change(JobPath(name), [&](json& job) { job["spec"].merge_patch(spec_changes); });
}

void OperatorWorld::MakeOlder(const std::string& name) {
  server.Change(JobPath(name), [](json& job) { job["status"].erase("credentialsVersion"); });
  for (const auto& [path, pod] : server.All("pods")) {
    if (JobOf(pod) != name) continue;
    server.Change(path, [](json& changed) {
      changed["metadata"]["labels"].erase(std::string(controller::kLabelCredentials));
    });
  }
}

std::set<std::string> OperatorWorld::NamesOfCoordinator(const std::string& name) const {
  for (const auto& [path, secret] : server.All("secrets")) {
    const std::string of_term =
        "-coordinator-" + std::to_string(Status(name).value("coordinatorTerm", 0));
    if (JobOf(secret) != name || !path.ends_with(of_term)) continue;
    return NamesOf(secret.at("stringData").at("tls.crt"));
  }
  return {};
}

json OperatorWorld::Status(const std::string& name) const {
  const json* job = server.Find(JobPath(name));
  return job == nullptr ? json::object() : job->value("status", json::object());
}

std::string OperatorWorld::Metrics() const {
  operator_->planning->Report();
  return operator_->metrics.Text();
}

int OperatorWorld::PodsOf(const std::string& name, const std::string& role) const {
  return static_cast<int>(std::ranges::count_if(server.All("pods"), [&](const auto& entry) {
    return JobOf(entry.second) == name && LabelOf(entry.second, controller::kLabelRole) == role &&
           !IsEnded(entry.second);
  }));
}

bool OperatorWorld::ReachSizes(const std::map<std::string, int>& sizes) {
  return Reach([&] {
    return std::ranges::all_of(sizes, [&](const auto& entry) {
      return Learners(entry.first) == entry.second && Phase(entry.first) == "Running";
    });
  });
}

void OperatorWorld::Complete(const std::string& name) {
  trainings_[name].complete = true;
  for (const auto& [path, pod] : server.All("pods")) {
    if (JobOf(pod) == name && LabelOf(pod, controller::kLabelRole) == controller::kRoleLearner &&
        pod.at("status").value("phase", "") == "Running") {
      EndPod(path, 0, "Completed");
    }
  }
}

void OperatorWorld::CrashALearner(const std::string& name, int exit_code) {
  for (const auto& [path, pod] : server.All("pods")) {
    if (JobOf(pod) == name && LabelOf(pod, controller::kLabelRole) == controller::kRoleLearner &&
        pod.at("status").value("phase", "") == "Running") {
      EndPod(path, exit_code, "Failed");
      return;
    }
  }
}

void OperatorWorld::RemovePods(const std::string& name, const std::string& role) {
  for (const auto& [path, pod] : server.All("pods")) {
    if (JobOf(pod) == name && LabelOf(pod, controller::kLabelRole) == role) server.Remove(path);
  }
}

void OperatorWorld::LetProgramsFail(const std::string& name, std::optional<int> exit_code) {
  failing_[name] = exit_code;
}

void OperatorWorld::OnChange(const std::string& path, const json& object) {
  if (path.find("/pods/") != std::string::npos) {
    if (!object.is_null()) OnPod(path, object);
    CheckAlways();
  }
  // The operator hears of it a little later, in order.
  loop.PostAfter(kWatchDelay, [this, path, object, generation = operator_generation_] {
    if (!operator_ || generation != operator_generation_) return;
    Operator& op = *operator_;
    const std::string name = path.substr(path.rfind('/') + 1);
    const auto apply = [&](auto& store, auto decode, const std::string& ns) {
      if (object.is_null()) {
        store.Erase({ns, name});
      } else {
        store.Put(ItemOf(object, decode()));
      }
    };
    if (path.find("/pods/") != std::string::npos) {
      apply(op.pods, [&] { return api::DecodePod(object, "nvidia.com/gpu"); }, kNs);
    } else if (path.find("/elastictrainingjobs/") != std::string::npos) {
      apply(op.jobs, [&] { return api::DecodeJob(object, {}); }, kNs);
    } else if (path.find("/nodes/") != std::string::npos) {
      apply(op.nodes, [&] { return api::DecodeNode(object, "nvidia.com/gpu"); }, "");
    } else if (path.find("/services/") != std::string::npos) {
      apply(op.services, [&] { return api::DecodeService(object); }, kNs);
    }
  });
}

// The scheduler and the kubelet.
void OperatorWorld::OnPod(const std::string& path, const json& pod) {
  if (LabelOf(pod, controller::kLabelRole) == controller::kRoleCoordinator) {
    terms_seen = std::max(terms_seen, std::stoi(LabelOf(pod, controller::kLabelTerm)));
  }
  const bool deleting = pod.at("metadata").contains("deletionTimestamp");
  const bool never_ran = pod.at("status").value("phase", "") == "Pending";
  if (deleting && (IsEnded(pod) || never_ran)) {
    loop.PostAfter(kWatchDelay, [this, path] { server.Remove(path); });
  } else if (deleting) {
    const bool learner = LabelOf(pod, controller::kLabelRole) == controller::kRoleLearner;
    loop.PostAfter(kStepTime,
                   [this, path, learner] { EndPod(path, learner ? 0 : 143, "Drained"); });
  } else if (!deleting && !IsGated(pod) && !pod.at("spec").contains("nodeName")) {
    loop.PostAfter(kStartTime, [this, path] { StartPod(path); });
  }
}

void OperatorWorld::StartPod(const std::string& path) {
  const json* pod = server.Find(path);
  if (pod == nullptr || pod->at("spec").contains("nodeName")) return;
  const std::string job = JobOf(*pod);
  const bool learner = LabelOf(*pod, controller::kLabelRole) == controller::kRoleLearner;
  const bool missing = learner && missing_images_.contains(job);
  server.Change(path, [&](json& changed) {
    changed["spec"]["nodeName"] = learner ? PinnedNode(changed) : "cpu-1";
    const char* container = learner ? "learner" : "coordinator";
    if (missing) {
      changed["status"]["containerStatuses"] = json::array(
          {{{"name", container},
            {"state", {{"waiting", {{"reason", "ErrImagePull"}, {"message", "no such image"}}}}}}});
      return;
    }
    changed["status"]["phase"] = "Running";
    changed["status"]["podIP"] =
        (learner ? "10.1.0." : "10.2.0.") + path.substr(path.rfind('-') + 1) + "-" + job;
    changed["status"]["containerStatuses"] =
        json::array({{{"name", container}, {"state", {{"running", json::object()}}}}});
  });
  if (missing) return;
  if (learner && failing_[job]) EndPod(path, *failing_[job], "Failed");
  const json* started = server.Find(path);
  coordinators_->Advance(LabelOf(*started, controller::kLabelJobUid));
}

void OperatorWorld::EndPod(const std::string& path, int exit_code, const std::string& reason) {
  const json* pod = server.Find(path);
  if (pod == nullptr || IsEnded(*pod)) return;
  const std::string job_uid = LabelOf(*pod, controller::kLabelJobUid);
  const json last_words = {{"reason", reason}, {"message", "bye"}, {"parametersSha256", "abc"}};
  server.Change(path, [&](json& changed) {
    changed["status"]["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
    changed["status"]["containerStatuses"] = json::array(
        {{{"name", "learner"},
          {"state", {{"terminated", {{"exitCode", exit_code}, {"message", last_words.dump()}}}}}}});
  });
  coordinators_->Advance(job_uid);
}

// DESIGN §11, as far as the operator answers for it.
void OperatorWorld::CheckAlways() {
  std::map<std::string, int> held;
  for (const auto& [path, pod] : server.All("pods")) {
    if (LabelOf(pod, controller::kLabelRole) != controller::kRoleLearner) continue;
    // A pod is seen first when it is created; later changes are of the same uid.
    names_used_.insert(path + " " + pod.at("metadata").at("uid").get<std::string>());
    if (!IsEnded(pod) && !IsGated(pod)) ++held[PinnedNode(pod)];
  }
  for (const auto& [node, gpus] : held) {
    ASSERT_LE(gpus, gpus_of_nodes_.at(node)) << "more learners than GPUs on " << node;
  }
  std::set<std::string> names;
  for (const std::string& used : names_used_) {
    ASSERT_TRUE(names.insert(used.substr(0, used.find(' '))).second) << "used twice: " << used;
  }
}

}  // namespace pliant
