#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/api/condition.h"
#include "operator/api/evaluation.h"
#include "operator/api/learner_template.h"
#include "operator/api/meta.h"
#include "operator/planner/cluster_snapshot.h"

// The custom resource ElasticTrainingJob (crds/): what the operator reads of its spec, and all of
// its status.
namespace pliant::api {

// Bounds of the spec, as in the CRD.
inline constexpr int kMaxLearners = 1024;
inline constexpr int kMaxGpusPerLearner = 16;
inline constexpr int kMaxLogicalShards = 4096;
inline constexpr std::int64_t kMaxBatchSize = std::int64_t{1} << 24;  // samples
inline constexpr int kMaxPriority = 10'000;
inline constexpr std::int64_t kMaxSeconds = 315'360'000;  // ten years

struct Elastic {
  int min_learners = 1;
  int max_learners = 1;
  int gpus_per_learner = 1;
  // Percent; sizes whose measured speed is below this part of the speed in proportion to the
  // learners are not taken. 0: all are.
  int min_efficiency = 0;

  bool operator==(const Elastic&) const = default;
};

using planner::Reproducibility;

struct TrainingSpec {
  std::int64_t global_batch_size = 0;
  std::optional<int> logical_shards;  // absent: derived at admission
  Reproducibility reproducibility = Reproducibility::kBitwise;
  std::int64_t seed = 0;
  std::optional<std::int64_t> max_batch_size;  // with batch mode FromState; absent: Constant

  bool operator==(const TrainingSpec&) const = default;
};

struct CheckpointSpec {
  std::string volume_json;  // a volume source, as it goes into the pod
  int every_steps = 200;
  int every_seconds = 300;
  int keep = 3;
  std::string resume_from;  // a job's uid, or a path; empty: start from the beginning

  bool operator==(const CheckpointSpec&) const = default;
};

inline constexpr std::chrono::seconds kDefaultCooldown{30};

struct ResizeSpec {
  std::chrono::seconds grace_period{60};
  std::chrono::seconds min_runtime{0};
  std::chrono::seconds cooldown = kDefaultCooldown;

  bool operator==(const ResizeSpec&) const = default;
};

struct FailurePolicy {
  int max_failures = 10;  // in a row, without a newly committed step between them
  std::vector<int> permanent_exit_codes;

  bool operator==(const FailurePolicy&) const = default;
};

// GPU time that a job has attained, each second halved with every half-life of its queue since
// then.
struct RecentService {
  std::int64_t gpu_seconds = 0;
  WallTime time;  // when this was computed

  bool operator==(const RecentService&) const = default;
};

struct JobSpec {
  std::string queue{planner::kBuiltInQueue};
  int priority = 5000;                // 5000 if the job asks for none
  std::optional<int> priority_asked;  // absent: the default of its queue applies
  // Absent: kDefaultCooldown, or none if its queue shares by speed.
  std::optional<std::chrono::seconds> cooldown_asked;
  bool suspend = false;
  Elastic elastic;
  TrainingSpec training;
  CheckpointSpec checkpoint;
  ResizeSpec resize;
  planner::PlacementPolicy placement = planner::PlacementPolicy::kPack;
  bool exchange_over_nccl = true;  // exchange: Auto, where the administrator allows it
  FailurePolicy failure_policy;
  // after it a grant whose learners have not started is withdrawn
  std::chrono::seconds start_timeout{300};
  std::chrono::seconds step_timeout{1800};  // a program that takes longer for a step counts as hung
  std::optional<std::chrono::seconds> active_deadline;     // since it last left the queue
  std::optional<std::chrono::seconds> ttl_after_finished;  // after it the job is deleted
  LearnerTemplate learner_template;
  // A sentence for the job's owner: which fields ask for more than its queue and pool allow, and
  // were reduced to that; "": none. Not a field of the object.
  std::string limited;
  // The extended resource that its learners use, as its pool says; "": that of the operator. Not in
  // the object.
  std::string gpu_resource;

  bool operator==(const JobSpec&) const = default;
};

// The administrator's settings for all jobs.
struct JobSettings {
  std::chrono::seconds start_timeout{300};  // of a job that does not set it
  std::optional<std::chrono::seconds> ttl_after_finished;

  bool operator==(const JobSettings&) const = default;
};

enum class JobPhase {
  kNew,  // nothing is decided yet; absent in the object
  kQueued,
  kStarting,
  kRunning,
  kResizing,
  kRecovering,
  kSuspending,  // to be suspended; learners still leave
  kSuspended,
  kTerminating,  // being deleted, and its object is still there
  kSucceeded,
  kFailed,
};
std::string_view ToString(JobPhase phase);

// The settings that the result depends on: derived once, at admission, and then frozen.
struct FrozenTraining {
  std::int64_t global_batch_size = 0;
  int logical_shards = 1;
  std::int64_t seed = 0;
  Reproducibility reproducibility = Reproducibility::kBitwise;
  std::optional<std::int64_t> max_batch_size;  // as in TrainingSpec

  bool operator==(const FrozenTraining&) const = default;
};

// Failures of learners since a step was last committed.
struct FailureCount {
  int count = 0;
  std::int64_t step = 0;  // the last committed step when the newest failure was counted
  // Numbers of the failed pods that still exist and are already counted, so that each counts once,
  // even if the operator restarts.
  std::vector<int> counted;

  bool operator==(const FailureCount&) const = default;
};

struct SavedCheckpoint {
  std::int64_t step = 0;
  WallTime time;

  bool operator==(const SavedCheckpoint&) const = default;
};

// Absent: unknown.
struct EstimatedTimes {
  std::optional<WallTime> start;       // when it will leave the queue
  std::optional<WallTime> completion;  // when it will complete

  bool operator==(const EstimatedTimes&) const = default;
};

// Maximum number in a status.
inline constexpr std::size_t kMaxMeasuredSpeeds = 8;

// The speed of a size that was tried.
struct MeasuredSpeed {
  int learners = 1;
  int nodes = 1;
  double samples_per_second = 0;
  double compute_seconds = 0;  // of a step, of the learner that computes longest

  bool operator==(const MeasuredSpeed&) const = default;
};

// The training, as its coordinator reported it.
struct JobProgress {
  std::string membership_id;
  std::optional<int> learners_asked;  // number of learners that the program requested
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> total_steps;
  std::optional<double> samples_per_second;
  std::vector<MeasuredSpeed> speeds;  // at most kMaxMeasuredSpeeds
  std::optional<double> loss;
  std::optional<double> accuracy;
  std::vector<Evaluation> evaluations;  // by step; at most kMaxEvaluations, the last ones
  std::string parameters_sha256;
  std::optional<SavedCheckpoint> last_checkpoint;

  bool operator==(const JobProgress&) const = default;
};

// The part of the GPUs that plans gave to the job.
struct JobShare {
  int desired_learners = 0;
  int entitlement = 0;             // learners
  std::int64_t entitled_gpus = 0;  // its part of its queue's share
  int demand_learners = 0;         // the most that it could use
  std::optional<int> jobs_before;  // that wait in its queue; absent: it has no turn there
  std::string limited_by;          // a planner::GrowthLimit; "": it has no place
  // The minimum with which it was admitted; absent: it waits, or an operator that did not record it
  // admitted the job.
  std::optional<int> admitted_minimum;
  std::optional<WallTime> start_time;   // when it last left the queue
  std::optional<WallTime> resize_time;  // when desired_learners last changed while it ran

  bool operator==(const JobShare&) const = default;
};

// The job's turn among those that wait, and estimates.
struct JobWaiting {
  std::optional<WallTime> since;  // when it began to wait; absent: it does not wait
  std::int64_t attained_gpu_seconds = 0;
  std::optional<RecentService> recent_service;
  EstimatedTimes estimated;

  bool operator==(const JobWaiting&) const = default;
};

// The objects made for the job.
struct JobObjects {
  std::int64_t coordinator_term = 0;
  std::string coordinator_image;
  int next_learner = 0;
  // LearnerTemplate::hash of the admitted template, from which its learners were made. Empty: the
  // job was never admitted.
  std::string admitted_template;

  bool operator==(const JobObjects&) const = default;
};

struct JobStatus {
  std::int64_t observed_generation = 0;
  JobPhase phase = JobPhase::kNew;
  std::string reason;     // why it has this size, a sentence
  std::string selector;   // of its learner pods, for the scale subresource
  int learners = 0;       // of the newest membership
  std::int64_t gpus = 0;  // of these learners
  JobShare share;
  JobWaiting waiting;
  std::optional<FrozenTraining> training;
  // The product of the GPUs on which it trains; empty: it has not trained, is not bitwise, or its
  // nodes do not say it.
  std::string gpu_product;
  std::string pool;  // where it had its learners last; empty: it never had any
  JobObjects objects;
  JobProgress progress;

  std::int64_t resizes = 0;
  std::int64_t restarts = 0;
  FailureCount failures;
  std::optional<WallTime> completion_time;
  std::vector<Condition> conditions;  // by type

  bool operator==(const JobStatus&) const = default;

  bool finished() const { return phase == JobPhase::kSucceeded || phase == JobPhase::kFailed; }
};

const Condition* FindCondition(const JobStatus& status, std::string_view type);

struct ElasticTrainingJob {
  ObjectMeta meta;
  JobSpec spec;
  JobStatus status;
  // The field of the spec that is missing, has a wrong type, or is out of range: then the spec must
  // not be acted on. Empty: the spec was understood.
  std::string unreadable;
  // The same of its status. Such a job must be left alone: it may have ended, or be in a state that
  // only a newer version of the operator knows. Empty: the status was understood.
  std::string unreadable_status;

  bool operator==(const ElasticTrainingJob&) const = default;
};

// kInvalid if its metadata is not understood. Of a status that a newer version wrote, the known
// fields are read. The spec is returned with the limits of `settings` applied, so that no
// caller acts on more than is allowed.
Result<ElasticTrainingJob> DecodeJob(const nlohmann::json& object, const JobSettings& settings);

// The status as JSON for a merge patch: fields without a value are null, which removes them.
nlohmann::json EncodeStatus(const JobStatus& status);
// The same of a status that is not understood: only what says so.
nlohmann::json EncodeRemark(const JobStatus& status);

}  // namespace pliant::api
