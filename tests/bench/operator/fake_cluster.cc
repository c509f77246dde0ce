#include "tests/bench/operator/fake_cluster.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "operator/api/time.h"
#include "operator/controller/actions/action_runner.h"
#include "operator/controller/model/names.h"

namespace pliant::bench {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

const auto kBegin = std::chrono::steady_clock::now();

api::WallTime Now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

kube::NamespacedName KeyOf(const api::Pod& pod) { return {pod.meta.name_space, pod.meta.name}; }

bool IsLearner(const api::Pod& pod) {
  const auto role = pod.meta.labels.find(std::string(controller::kLabelRole));
  return role != pod.meta.labels.end() && role->second == controller::kRoleLearner;
}

std::string LabelOf(const api::Pod& pod, std::string_view label) {
  const auto found = pod.meta.labels.find(std::string(label));
  return found == pod.meta.labels.end() ? "" : found->second;
}

json ContainerStatus(const char* name, json state) {
  return json::array({{{"name", name},
                       {"image", "x"},
                       {"imageID", "x"},
                       {"ready", true},
                       {"restartCount", 0},
                       {"state", std::move(state)}}});
}

}  // namespace

double Elapsed() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - kBegin).count();
}

FakeCluster::FakeCluster(kube::KubeClient& client, const controller::MasterKeys& keys,
                         std::string folder)
    : client_(client),
      keys_(keys),
      folder_(std::move(folder)),
      workers_("a pod of the cluster", 8),
      jobs_(loop_, [](const json& object) { return api::DecodeJob(object, {}); }),
      pods_(loop_, [](const json& object) { return api::DecodePod(object, "nvidia.com/gpu"); }) {
  jobs_.store().OnChange([this](const auto& change) { OnJob(change); });
  pods_.store().OnChange([this](const auto& change) { OnPod(change); });
  jobs_.Start(client_, controller::kJobs);
  pods_.Start(client_, kube::kPods, {.label_selector = std::string(controller::kLabelRole)});
  thread_ = std::jthread([this] { loop_.Run(); });
  heart_ = std::jthread([this](const std::stop_token& stop) { KeepReady(stop); });
}

FakeCluster::~FakeCluster() {
  heart_ = {};
  loop_.Post([this] {
    coordinators_.clear();
    loop_.Stop();
  });
  thread_.join();
}

void FakeCluster::AddNodes(const std::string& label, int count, int gpus) {
  for (int i = 0; i < count; ++i) {
    const std::string name = Format("bench-{}-{:04}", label, i);
    const auto made = client_.Create(
        kube::kNodes, {{"metadata", {{"name", name}, {"labels", {{"bench", label}}}}}});
    CHECK(made.has_value() || made.error().code == ErrorCode::kAlreadyExists, "a node can be made");
    const std::lock_guard lock(mutex_);
    nodes_[name] = gpus;
  }
}

void FakeCluster::CountEvents(bool count) {
  counts_events_ = false;
  loop_.Post([this, count] {
    events_.reset();
    if (!count) return;
    events_.emplace(
        loop_, [](const json& object) -> Result<kube::ObjectMeta> { return kube::MetaOf(object); });
    events_->store().OnChange([this](const kube::Store<kube::ObjectMeta>::Change& change) {
      if (change.after != nullptr && events_->store().synced()) ++event_writes_;
    });
    events_->Start(client_, kube::kEvents, {.field_selector = "regarding.kind=ElasticTrainingJob"});
    AwaitEvents();
  });
}

void FakeCluster::AwaitEvents() {
  if (!events_) return;
  if (events_->store().synced()) {
    counts_events_ = true;
  } else {
    loop_.PostAfter(100ms, [this] { AwaitEvents(); });
  }
}

// The node controller declares a node lost after 20 s without a heartbeat.
void FakeCluster::KeepReady(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (!stop.stop_requested()) {
    std::map<std::string, int> nodes;
    {
      const std::lock_guard lock(mutex_);
      nodes = nodes_;
    }
    for (const auto& [name, gpus] : nodes) {
      const json amount = {{"cpu", "1000"},
                           {"memory", "1000Gi"},
                           {"pods", "1000"},
                           {"nvidia.com/gpu", std::to_string(gpus)}};
      const json ready = {{"type", "Ready"},
                          {"status", "True"},
                          {"reason", "Bench"},
                          {"message", "it is said to be"},
                          {"lastHeartbeatTime", api::FormatTime(Now())}};
      std::ignore = client_.Patch(
          kube::kNodes, {"", name},
          {{"status",
            {{"allocatable", amount}, {"capacity", amount}, {"conditions", json::array({ready})}}}},
          {.subresource = "status"});
    }
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, 5s, [] { return false; });
  }
}

void FakeCluster::OnJob(const kube::Store<api::ElasticTrainingJob>::Change& change) {
  ++job_changes_;
  if (change.after == nullptr) return;
  const auto is_admitted = [](const auto& job) {
    return job != nullptr && job->status.training.has_value();
  };
  if (is_admitted(change.after) && !is_admitted(change.before)) ++admitted_;
  if (change.before != nullptr &&
      change.before->status.share.desired_learners != change.after->status.share.desired_learners) {
    ++size_changes_;
    last_size_change_ = Elapsed();
  }
}

void FakeCluster::OnPod(const kube::Store<api::Pod>::Change& change) {
  if (change.before == nullptr || change.after == nullptr) ++pods_made_or_gone_;
  CountPodWrites(change);
  if (change.after == nullptr) return;
  const api::Pod& pod = *change.after;
  const std::string& uid = pod.meta.uid;
  if (pod.deleting()) {
    if (ended_.insert(uid).second) {
      workers_.Run([this, key = KeyOf(pod), uid] {
        std::ignore =
            client_.Delete(kube::kPods, key, {.uid = uid, .grace_period = Duration::zero()});
      });
    }
  } else if (pod.scheduling_gates.empty() && !pod.ended() && started_.insert(uid).second) {
    Run(pod);
  }
}

// Counts the deletion of a pod that has ended, too: such a pod disappears at once.
void FakeCluster::CountPodWrites(const kube::Store<api::Pod>::Change& change) {
  const auto gated = [](const api::Pod& pod) { return !pod.scheduling_gates.empty(); };
  if (change.before == nullptr) {
    ++pod_writes_;
    return;
  }
  const bool gone = change.after == nullptr;
  if (!gone && gated(*change.before) && !gated(*change.after)) ++pod_writes_;
  if (!change.before->deleting() && (gone || change.after->deleting())) ++pod_writes_;
}

// Writes what the scheduler would, then what the kubelet would.
void FakeCluster::Run(const api::Pod& pod) {
  const bool learner = IsLearner(pod);
  const std::string address = learner ? "127.0.0.1" : Listen(pod);
  std::string node = pod.planned_node;
  if (node.empty()) {
    const std::lock_guard lock(mutex_);
    node = nodes_.begin()->first;
  }
  workers_.Run([this, key = KeyOf(pod), node, address, learner] {
    std::ignore = client_.Create(kube::kPods,
                                 {{"apiVersion", "v1"},
                                  {"kind", "Binding"},
                                  {"metadata", {{"namespace", key.ns}, {"name", key.name}}},
                                  {"target", {{"kind", "Node"}, {"name", node}}}},
                                 {.subresource = "binding"});
    const json running = {{"running", {{"startedAt", api::FormatTime(Now())}}}};
    std::ignore = client_.Patch(
        kube::kPods, key,
        {{"status",
          {{"phase", "Running"},
           {"podIP", address},
           {"podIPs", json::array({{{"ip", address}}})},
           {"containerStatuses", ContainerStatus(learner ? "learner" : "coordinator", running)}}}},
        {.subresource = "status"});
    if (learner) ++running_;
  });
}

void FakeCluster::End(const kube::NamespacedName& pod, const char* reason) {
  workers_.Run([this, pod, reason] {
    const json words = {{"reason", reason}, {"parametersSha256", std::string(64, 'a')}};
    std::ignore = client_.Patch(
        kube::kPods, pod,
        {{"status",
          {{"phase", "Succeeded"},
           {"containerStatuses",
            ContainerStatus("learner",
                            {{"terminated", {{"exitCode", 0}, {"message", words.dump()}}}})}}}},
        {.subresource = "status"});
    --running_;
  });
}

void FakeCluster::Complete(const std::string& job) {
  loop_.Post([this, job] {
    for (const auto& pod : pods_.store().All()) {
      const bool of_job = LabelOf(*pod, controller::kLabelJob) == job;
      if (of_job && IsLearner(*pod) && !pod->ended()) End(KeyOf(*pod), "Completed");
    }
  });
}

std::string FakeCluster::Listen(const api::Pod& pod) {
  const std::string address = Format("127.7.{}.{}", addresses_ / 250, addresses_ % 250 + 1);
  ++addresses_;
  Coordinator& coordinator = coordinators_[address];
  coordinator.job_uid = pod.meta.owner_uid;
  coordinator.term = std::stoll(LabelOf(pod, controller::kLabelTerm));
  const auto credentials = controller::MakeJobCredentials(keys_, coordinator.job_uid, Now());
  CHECK(credentials.has_value(), "the operator's keys make credentials");
  const std::filesystem::path folder = folder_ / coordinator.job_uid;
  const TlsFiles tls{.certificate = folder / "tls.crt", .key = folder / "tls.key"};
  std::filesystem::create_directories(folder);
  std::ofstream(tls.certificate) << credentials->certificate;
  std::ofstream(tls.key) << credentials->key;
  auto server = HttpServer::Listen(
      loop_, {.address = address, .port = controller::kCoordinatorPort, .tls = tls},
      {{.method = "PUT",
        .path = "/v1/plan",
        .handle = [this, address](const ServerRequest& r) { return TakePlan(address, r); }},
       {.method = "GET", .path = "/v1/progress", .handle = [this, address](const ServerRequest&) {
          return Progress(address);
        }}});
  if (server) {
    coordinator.server = *std::move(server);
  } else {
    log::Error("no coordinator", {{"error", server.error().message}});
  }
  return address;
}

ServerResponse FakeCluster::TakePlan(const std::string& address, const ServerRequest& request) {
  last_plan_ = Elapsed();
  Coordinator& coordinator = coordinators_.at(address);
  const json plan = json::parse(request.body);
  coordinator.stamp = {{"leaseTransitions", plan.at("leaseTransitions")},
                       {"sequence", plan.at("sequence")}};
  coordinator.members.clear();
  for (const json& learner : plan.at("learners")) {
    const std::string name = learner.at("name");
    if (learner.at("state") == "Wanted") coordinator.members.push_back(name);
    const std::string uid = learner.at("podUid");
    if (learner.at("state") == "Leaving" && ended_.insert(uid).second) {
      for (const auto& pod : pods_.store().All()) {
        if (pod->meta.uid == uid) End(KeyOf(*pod), "Drained");
      }
    }
  }
  return Progress(address);
}

ServerResponse FakeCluster::Progress(const std::string& address) {
  const Coordinator& coordinator = coordinators_.at(address);
  json report = {
      {"term", coordinator.term},
      {"state", coordinator.members.empty() ? "Waiting" : "Running"},
      {"membership", {{"id", Format("{}.1", coordinator.term)}, {"learners", coordinator.members}}},
      {"step", 1}};
  if (!coordinator.stamp.is_null()) report["planAccepted"] = coordinator.stamp;
  return {.body = report.dump()};
}

}  // namespace pliant::bench
