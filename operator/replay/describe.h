#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/gpu_pool.h"
#include "operator/api/training_queue.h"
#include "operator/replay/debug_snapshot.h"

// The fields of a snapshot and of a plan: their names in JSON, and their bounds. One list serves
// writing and reading, so that they cannot differ. A test fails if a field of a struct is missing.
namespace pliant::replay {

template <typename T, typename Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

struct Bounds {
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
};

// Bounds of lists. The size of the text bounds their sum.
inline constexpr std::size_t kMaxItems = 1'000'000;
inline constexpr std::size_t kMaxLearnersOfJob = 4096;
inline constexpr std::size_t kMaxTextBytes = 65536;

// The API's bounds of what the planner divides by and multiplies. They keep its products within 64
// bits.
inline constexpr Bounds kLearners{1, api::kMaxLearners};
inline constexpr Bounds kGpusPerLearner{1, api::kMaxGpusPerLearner};
inline constexpr Bounds kGpus{0, api::kMaxGpus};
inline constexpr Bounds kPriority{1, api::kMaxPriority};
inline constexpr Bounds kWeight{1, api::kMaxWeight};
inline constexpr Bounds kHalfLife{api::kMinHalfLifeSeconds, api::kMaxHalfLifeSeconds};
inline constexpr Bounds kShards{1, api::kMaxLogicalShards};
inline constexpr Bounds kAttained{0, 100'000'000'000'000};
inline constexpr Bounds kCount{0, 1 << 20};
inline constexpr Bounds kSpeed{0, planner::kMaxSpeed};
inline constexpr Bounds kPercent{0, 1000};
inline constexpr Bounds kEfficiencyPercent{0, 100};
inline constexpr Bounds kSeconds{0, api::kMaxSeconds};
inline constexpr Bounds kSomeSeconds{1, api::kMaxSeconds};
// Milliseconds from 1970 to 9999.
inline constexpr Bounds kTimes{0, 253'402'300'799'999};

template <Is<planner::Resources> T>
void Describe(auto& to, T& resources, Bounds gpus) {
  to.Number("gpus", resources.gpus, gpus);
  to.Number("cpuMillis", resources.cpu_millis, Bounds{});
  to.Number("memoryBytes", resources.memory_bytes, Bounds{});
}

template <Is<planner::Taint> T>
void Describe(auto& to, T& taint) {
  to.Text("key", taint.key);
  to.Text("value", taint.value);
  to.Text("effect", taint.effect);
}

template <Is<planner::ForeignUsers> T>
void Describe(auto& to, T& users) {
  to.Text("gpus", users.gpus);
  to.Text("cpu", users.cpu);
  to.Text("memory", users.memory);
}

// Without `version`, which only says which nodes a cache knows.
template <Is<planner::NodeView> T>
void Describe(auto& to, T& node) {
  to.Text("name", node.name);
  to.Text("pool", node.pool);
  to.Object("allocatable", node.allocatable, kGpus);
  to.Object("foreign", node.foreign, Bounds{});
  to.Object("foreignUsers", node.foreign_users);
  to.Texts("labels", node.labels);
  to.List("taints", node.taints, kMaxItems);
  to.Flag("ready", node.ready);
  to.Flag("schedulable", node.schedulable);
}

template <Is<planner::Toleration> T>
void Describe(auto& to, T& toleration) {
  to.Text("key", toleration.key);
  to.Text("value", toleration.value);
  to.Text("effect", toleration.effect);
  to.Flag("exists", toleration.exists);
}

template <Is<planner::NodeRequirement> T>
void Describe(auto& to, T& requirement) {
  to.Text("key", requirement.key);
  to.Enum("operator", requirement.op);
  to.Texts("values", requirement.values);
}

template <Is<std::vector<planner::NodeRequirement>> T>
void Describe(auto& to, T& term) {
  to.List("matchExpressions", term, kMaxItems);
}

template <Is<planner::PodNeeds> T>
void Describe(auto& to, T& needs, Bounds gpus = kGpusPerLearner) {
  to.Object("resources", needs.resources, gpus);
  to.List("tolerations", needs.tolerations, kMaxItems);
  to.Texts("nodeSelector", needs.node_selector);
  to.List("nodeAffinity", needs.node_affinity, kMaxItems);
}

template <Is<planner::LearnerView> T>
void Describe(auto& to, T& learner) {
  to.Text("name", learner.name);
  to.Text("node", learner.node);
  to.Enum("state", learner.state);
  to.Time("created", learner.created);
  to.Time("since", learner.since);
  to.Flag("member", learner.member);
  to.Flag("refused", learner.refused);
  to.Flag("unschedulable", learner.unschedulable);
}

template <Is<planner::DemandCap> T>
void Describe(auto& to, T& cap) {
  to.Number("learners", cap.learners, kCount);
  to.Time("until", cap.until);
  to.Number("strikes", cap.strikes, kCount);
  to.Text("cause", cap.cause);
}

template <Is<planner::AvoidedNode> T>
void Describe(auto& to, T& node) {
  to.Text("node", node.node);
  to.Time("until", node.until);
}

template <Is<planner::QueueView> T>
void Describe(auto& to, T& queue) {
  to.Text("name", queue.name);
  to.Text("pool", queue.pool);
  to.Number("weight", queue.weight, kWeight);
  to.Number("guaranteedGpus", queue.guaranteed_gpus, kGpus);
  to.Number("limitGpus", queue.limit_gpus, kGpus);
  to.Number("lendingLimitGpus", queue.lending_limit_gpus, kGpus);
  to.Enum("policy", queue.policy);
  to.Flag("strict", queue.strict);
  to.Flag("evicts", queue.evicts);
  to.Duration("halfLifeSeconds", queue.half_life, kHalfLife);
  to.Enum("stop", queue.stop);
  to.Flag("favorsShortJobs", queue.favors_short_jobs);
}

template <Is<planner::PoolView> T>
void Describe(auto& to, T& pool) {
  to.Text("name", pool.name);
  to.Text("resource", pool.resource);
  to.Number("reservedGpus", pool.reserved_gpus, kGpus);
  to.Texts("topologyKeys", pool.topology_keys);
  to.Flag("requestsNodes", pool.requests_nodes);
  to.Flag("yields", pool.yields);
}

template <Is<planner::JobTraining> T>
void Describe(auto& to, T& training) {
  to.Number("logicalShards", training.logical_shards, kShards);
  to.Numbers("speeds", training.speeds, kSpeed);
  to.Number("minEfficiencyPercent", training.min_efficiency, kEfficiencyPercent);
  to.Enum("reproducibility", training.reproducibility);
  to.Text("gpuProduct", training.gpu_product);
  to.Number("remainingSeconds", training.remaining_seconds, kSeconds);
  to.Number("aloneSeconds", training.alone_seconds, Bounds{});
  to.Number("holdPercent", training.hold_percent, kPercent);
}

template <Is<planner::JobWaiting> T>
void Describe(auto& to, T& waiting) {
  to.Time("since", waiting.since);
  to.Number("attainedGpuSeconds", waiting.attained_gpu_seconds, kAttained);
  to.Time("attainedAt", waiting.attained_at);
}

template <Is<planner::JobShare> T>
void Describe(auto& to, T& share) {
  to.Number("desiredLearners", share.desired, kCount);
  to.Number("admittedMinimum", share.admitted_minimum, kLearners);
  to.Time("started", share.started);
  to.Time("resized", share.resized);
  to.Time("belowMinimumSince", share.below_minimum_since);
  to.Time("yieldsUntil", share.yields_until);
}

template <Is<planner::JobView> T>
void Describe(auto& to, T& job) {
  to.Job(job.key);
  to.Text("queue", job.queue);
  to.Text("pool", job.pool);
  to.Text("queueRefusal", job.queue_refusal);
  to.Number("priority", job.priority, kPriority);
  to.Number("minLearners", job.min_learners, kLearners);
  to.Number("maxLearners", job.max_learners, kLearners);
  to.Number("learnersAsked", job.learners_asked, kCount);
  to.Object("needs", job.needs);
  to.Enum("placement", job.placement);
  to.Object("training", job.training);
  to.Flag("suspended", job.suspended);
  to.Flag("deleted", job.deleted);
  to.Flag("finished", job.finished);
  to.Time("submitted", job.submitted);
  to.Object("waiting", job.waiting);
  to.Object("share", job.share);
  to.Duration("minRuntimeSeconds", job.min_runtime, kSeconds);
  to.Duration("cooldownSeconds", job.cooldown, kSeconds);
  to.Duration("startTimeoutSeconds", job.start_timeout, kSeconds);
  to.Time("refusedSince", job.refused_since);
  to.Text("startProblem", job.start_problem);
  to.List("learners", job.learners, kMaxLearnersOfJob);
  to.Object("cap", job.cap);
  to.List("avoided", job.avoided, kMaxItems);
}

template <Is<planner::GpuBudget> T>
void Describe(auto& to, T& budget) {
  to.Text("namespace", budget.name_space);
  to.Number("gpus", budget.gpus, Bounds{});
  to.Text("resource", budget.resource);
}

template <Is<planner::PendingPod> T>
void Describe(auto& to, T& pod) {
  to.Text("namespace", pod.name_space);
  to.Text("name", pod.name);
  to.Text("resource", pod.resource);
  to.Number("gpus", pod.gpus, Bounds{});
  to.Needs("needs", pod.asks);
  to.Time("since", pod.since);
}

template <Is<planner::ClusterSnapshot> T>
void Describe(auto& to, T& snapshot) {
  to.Time("now", snapshot.now);
  to.List("nodes", snapshot.nodes, kMaxItems);
  to.List("jobs", snapshot.jobs, kMaxItems);
  to.List("budgets", snapshot.budgets, kMaxItems);
  to.List("queues", snapshot.queues, kMaxItems);
  to.List("pools", snapshot.pools, kMaxItems);
  to.List("pending", snapshot.pending, kMaxItems);
}

// The planner does not end if a time that it doubles is 0.
template <Is<planner::Policy> T>
void Describe(auto& to, T& policy) {
  to.Duration("firstCapSeconds", policy.first_cap, kSomeSeconds);
  to.Duration("longestCapSeconds", policy.longest_cap, kSomeSeconds);
  to.Duration("belowMinimumGraceSeconds", policy.below_minimum_grace, kSeconds);
  to.Duration("reserveAfterSeconds", policy.reserve_after, kSeconds);
  to.Duration("reserveForSeconds", policy.reserve_for, kSomeSeconds);
  to.Duration("yieldForSeconds", policy.yield_for, kSomeSeconds);
  to.Duration("yieldPauseSeconds", policy.yield_pause, kSeconds);
  to.Duration("requestNodesAfterSeconds", policy.request_nodes_after, kSeconds);
  to.Number("holdPercent", policy.hold_percent, kPercent);
}

template <Is<planner::Reason> T>
void Describe(auto& to, T& reason) {
  to.Enum("code", reason.code);
  to.Text("sentence", reason.sentence);
}

template <Is<planner::NewLearner> T>
void Describe(auto& to, T& learner) {
  to.Text("node", learner.node);
  to.Text("hostname", learner.hostname);
  to.Flag("waitsForQuota", learner.waits_for_quota);
}

template <Is<planner::NodeRequest> T>
void Describe(auto& to, T& nodes) {
  to.Number("learners", nodes.learners, kCount);
  to.Text("gpuProduct", nodes.gpu_product);
}

template <Is<planner::Decision> T>
void Describe(auto& to, T& decision) {
  to.Job(decision.job);
  to.Number("from", decision.from, kCount);
  to.Number("to", decision.to, kCount);
  to.Number("entitledGpus", decision.entitled_gpus, Bounds{});
  to.Number("entitlement", decision.entitlement, kCount);
  to.Number("demand", decision.demand, kCount);
  to.Enum("limitedBy", decision.limited_by);
  to.Number("jobsBefore", decision.jobs_before, kCount);
  to.Text("reclaimedBy", decision.reclaimed_by);
  to.Number("minimum", decision.minimum, kLearners);
  to.Texts("keep", decision.keep);
  to.Texts("drop", decision.drop);
  to.List("create", decision.create, kMaxItems);
  to.Text("gpuProduct", decision.gpu_product);
  to.Time("startsAt", decision.starts_at);
  to.Time("endsAt", decision.ends_at);
  to.Object("nodes", decision.nodes);
  to.Object("cap", decision.cap);
  to.Object("reason", decision.reason);
}

template <Is<planner::QueueShare> T>
void Describe(auto& to, T& share) {
  to.Text("queue", share.queue);
  to.Text("pool", share.pool);
  to.Number("demand", share.demand, Bounds{});
  to.Number("entitled", share.entitled, Bounds{});
  to.Number("allocated", share.allocated, Bounds{});
  to.Number("borrowed", share.borrowed, Bounds{});
  to.Number("lent", share.lent, Bounds{});
  to.Number("running", share.running, kCount);
  to.Number("waiting", share.waiting, kCount);
  to.Enum("state", share.state);
  to.Text("sentence", share.sentence);
}

template <Is<planner::PoolShare> T>
void Describe(auto& to, T& share) {
  to.Text("pool", share.pool);
  to.Flag("exists", share.exists);
  to.Number("nodes", share.nodes, Bounds{});
  to.Number("capacity", share.capacity, Bounds{});
  to.Number("allocated", share.allocated, Bounds{});
  to.Number("foreign", share.foreign, Bounds{});
  to.Number("requested", share.requested, Bounds{});
  to.Number("yielded", share.yielded, Bounds{});
}

template <Is<planner::GateOpening> T>
void Describe(auto& to, T& opening) {
  to.Job(opening.job);
  to.Text("learner", opening.learner);
  to.Text("node", opening.node);
}

template <Is<planner::Plan> T>
void Describe(auto& to, T& plan) {
  to.List("decisions", plan.decisions, kMaxItems);
  to.List("queues", plan.queues, kMaxItems);
  to.List("pools", plan.pools, kMaxItems);
  to.List("gatesOpen", plan.gates_open, kMaxItems);
  to.Number("capacityGpus", plan.capacity_gpus, Bounds{});
  to.Time("againAt", plan.again_at);
}

template <Is<DebugSnapshot> T>
void Describe(auto& to, T& debug) {
  to.Object("snapshot", debug.snapshot);
  to.Object("policy", debug.policy);
  to.Object("plan", debug.plan);
}

}  // namespace pliant::replay
