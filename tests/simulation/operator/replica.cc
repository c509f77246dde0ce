#include "tests/simulation/operator/replica.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/kube/request_target.h"

namespace pliant::operator_sim {
namespace {

using std::chrono::milliseconds;

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr milliseconds kMaxWatchDelay{60};
constexpr milliseconds kMaxApiCall{20};
constexpr milliseconds kMaxCoordinatorCall{40};
constexpr milliseconds kWebhookLook{100};

kube::Config ServerConfig() { return {.server = "https://memory"}; }

}  // namespace

// One reflector, with its timer.
struct Replica::Follower {
  std::string collection;
  kube::ReflectorSteps steps;
  TimerId timer = 0;  // 0: it waits for an event
};

Replica::Replica(std::string identity, ReplicaParts parts)
    : identity_(std::move(identity)),
      parts_(std::move(parts)),
      loop_(parts_.loop),
      life_(parts_.on_end),
      clock_check_([this] { return clock_.Now(parts_.now(), loop_.Now()); }),
      // The server is owned by the world.
      transport_(life_, {std::shared_ptr<void>(), &parts_.server}, parts_.fault,
                 parts_.on_exchange),
      lease_client_(transport_, ServerConfig(), OptionsOfClient({})),
      client_(transport_, ServerConfig(), OptionsOfClient([this] { return leads(); })),
      jobs_(loop_, [](const nlohmann::json& o) { return api::DecodeJob(o, {}); }),
      pods_(loop_, [this](const nlohmann::json& o) { return api::DecodePod(o, kGpu, &needs_); }),
      nodes_(loop_, [](const nlohmann::json& o) { return api::DecodeNode(o, kGpu); }),
      services_(loop_, api::DecodeService),
      quotas_(loop_, [](const nlohmann::json& o) { return api::DecodeResourceQuota(o, kGpu); }),
      queues_(loop_, api::DecodeTrainingQueue),
      pools_(loop_, api::DecodeGpuPool),
      namespaces_(loop_, api::DecodeNamespace),
      table_({.jobs = jobs_.store(),
              .pods = pods_.store(),
              .nodes = nodes_.store(),
              .services = services_.store(),
              .quotas = quotas_.store(),
              .queues = queues_.store(),
              .pools = pools_.store(),
              .namespaces = namespaces_.store()}),
      leadership_({.loop = loop_,
                   .table = table_,
                   .client = client_,
                   .api_calls = ExecutorOf(kMaxApiCall),
                   .pod_making_calls = [this](auto task) { MakePods(std::move(task)); },
                   .coordinator_calls = ExecutorOf(kMaxCoordinatorCall),
                   .metrics = metrics_,
                   .crash_notes = parts_.crash_notes},
                  {.ns = "pliant-system",
                   .pods = {.priority_class = "learners"},
                   .planning = {.lifecycle = {.coordinator_image = "pliant:1"},
                                .node_requests = parts_.node_requests,
                                .placeholders = {.ns = "pliant-system", .image = "pliant:1"},
                                .now = [this] { return clock_.Now(parts_.now(), loop_.Now()); },
                                .clock_agrees = [this] { return clock_check_.Agrees(); },
                                .on_event = parts_.on_event},
                   .connect = [this](const std::string& server, const std::string& ca)
                       -> Result<std::unique_ptr<kube::HttpTransport>> {
                     ASSIGN_OR_RETURN(auto coordinator, parts_.connect(server, ca));
                     return std::make_unique<FaultyTransport>(life_, std::move(coordinator),
                                                              parts_.coordinator_fault,
                                                              parts_.on_exchange);
                   }}),
      steps_(lease_client_, {"pliant-system", "pliant-operator"}, identity_, {},
             [this] { return loop_.Now(); }) {
  Follow(jobs_, controller::kJobs, {});
  Follow(pods_, kube::kPods, {});
  Follow(nodes_, kube::kNodes, {});
  Follow(quotas_, kube::kResourceQuotas, {});
  Follow(queues_, controller::kTrainingQueues, {.kind_is_optional = true});
  Follow(pools_, controller::kGpuPools, {.kind_is_optional = true});
  Follow(namespaces_, kube::kNamespaces, {});
  Follow(services_, kube::kServices, {.label_selector = "app.kubernetes.io/managed-by=pliant"});
  loop_.Post([this] { Elect(); });
}

Replica::~Replica() = default;

kube::ClientOptions Replica::OptionsOfClient(std::function<bool()> may_write) {
  return {.requests_per_second = 0,
          .may_write = std::move(may_write),
          .on_request = [this](const kube::RequestReport& report) {
            clock_check_.OnDate(report.date, report.took);
          }};
}

controller::Executor Replica::ExecutorOf(Duration most) {
  return [this, most](std::function<void()> task) {
    loop_.PostAfter(std::chrono::duration_cast<Duration>(most * parts_.random()), std::move(task));
  };
}

void Replica::MakePods(std::function<void()> task) {
  if (!parts_.webhooks_hang()) {
    ExecutorOf(kMaxApiCall)(std::move(task));
    return;
  }
  loop_.PostAfter(kWebhookLook, [this, task = std::move(task)] { MakePods(task); });
}

template <typename T>
void Replica::Follow(kube::Informer<T>& informer, const kube::ResourceType& type,
                     kube::ReflectorOptions options) {
  followers_.push_back(std::make_unique<Follower>(
      Follower{.collection = kube::CollectionPath(type, ""),
               .steps = kube::ReflectorSteps(client_, type, std::move(options), informer.Sink(),
                                             [this] { return loop_.Now(); })}));
  Follower& follower = *followers_.back();
  follower.timer = loop_.PostAfter(Duration::zero(), [this, &follower] { Poll(follower); });
}

void Replica::OnServerChange(const std::string& path) {
  for (const auto& follower : followers_) {
    if (follower->timer != 0 || !kube::IsIn(follower->collection, path)) continue;
    const auto delay = std::chrono::duration_cast<Duration>(kMaxWatchDelay * parts_.random());
    follower->timer = loop_.PostAfter(delay, [this, &f = *follower] { Poll(f); });
  }
}

void Replica::Poll(Follower& follower) {
  follower.timer = 0;
  if (loop_.Now() < frozen_until_) {
    follower.timer =
        loop_.PostAfter(frozen_until_ - loop_.Now(), [this, &follower] { Poll(follower); });
    return;
  }
  // Three steps at most: a watch that fails because its position is gone, a list, and a watch from
  // there on.
  Duration wait{};
  for (int step = 0; step < 3 && wait == Duration::zero(); ++step) {
    wait = follower.steps.Next(parts_.random());
  }
  if (wait == Duration::zero()) return;
  follower.timer = loop_.PostAfter(wait, [this, &follower] { Poll(follower); });
}

void Replica::Elect() {
  const Duration wait = steps_.Next(api::FormatTime(parts_.now()), parts_.random());
  const kube::LeasePolicy& policy = steps_.policy();
  if (!std::exchange(elected_, elected_ || leads()) && elected_) {
    leadership_.Begin(policy.transitions());
  }
  if (policy.Lost(loop_.Now())) {
    parts_.on_end();
    return;
  }
  loop_.PostAfter(wait, [this] { Elect(); });
}

const planner::Plan* Replica::plan() const {
  const controller::PlanningLoop* planning = leadership_.planning();
  return planning == nullptr ? nullptr : &planning->plan();
}

std::string Replica::Metrics() {
  leadership_.planning()->Report();
  return metrics_.Text();
}

void Replica::Release() {
  if (const auto released = steps_.StopLeading(api::FormatTime(parts_.now()))) {
    steps_.WriteReleased(*released);
  }
  parts_.on_end();
}

}  // namespace pliant::operator_sim
