#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/api/elastic_training_job.h"
#include "operator/api/time.h"

// The messages between the operator and a job's coordinator (docs/contracts.md §2).
namespace pliant::controller {

enum class DesiredLearnerState { kWanted, kLeaving, kEnded };
std::string_view ToString(DesiredLearnerState wish);

struct PlannedLearner {
  std::string name;
  std::string pod_uid;
  DesiredLearnerState state = DesiredLearnerState::kWanted;
  auto operator<=>(const PlannedLearner&) const = default;
};

// The order of plans: a coordinator refuses one that is older than the last that it took.
struct PlanStamp {
  std::int64_t lease_transitions = 0;
  std::int64_t sequence = 0;
  auto operator<=>(const PlanStamp&) const = default;
};

struct CoordinatorPlan {
  PlanStamp stamp;
  std::vector<PlannedLearner> learners;
  std::string reason;  // why it has these learners
  bool operator==(const CoordinatorPlan&) const = default;
};

enum class CoordinatorState { kWaiting, kRunning, kResizing, kRecovering, kDrained, kCompleted };

// "term.counter"; the default precedes all others.
struct MembershipId {
  std::int64_t term = 0;
  std::int64_t counter = 0;
  auto operator<=>(const MembershipId&) const = default;
};
// Returns the default for a text that is no id, also for "".
MembershipId ParseMembershipId(std::string_view text);

struct ReportedLearner {
  std::string name;
  std::string pod_uid;
  std::string state;  // "Ready", "Preparing", "Member", "Leaving", "Refused"
  bool operator==(const ReportedLearner&) const = default;
};

struct ReportedResize {
  MembershipId membership;
  int from = 0;
  int to = 0;
  // The longest pause of a learner, of a planned resize; from 0 to kMaxPauseSeconds.
  std::optional<double> pause_seconds;
  static constexpr double kMaxPauseSeconds = 3600;
  bool operator==(const ReportedResize&) const = default;
};

struct ReportedCheckpoint {
  std::optional<api::SavedCheckpoint> saved;  // the newest; nullopt: none yet
  // The error of the last attempt; empty if it succeeded.
  std::string error;
  std::string reason;  // "VolumeFull", "VolumeReadOnly" or "WriteFailed"
  bool operator==(const ReportedCheckpoint&) const = default;
};

// The speed of the present membership, since it is steady.
struct ReportedSpeed {
  double samples_per_second = 0;  // > 0
  double compute_seconds = 0;     // of a step, of the learner that computes longest; > 0
  double seconds = 0;             // for which it is steady
  bool operator==(const ReportedSpeed&) const = default;
};

struct Progress {
  std::int64_t term = 0;
  CoordinatorState state = CoordinatorState::kWaiting;
  std::string membership_id;
  std::vector<std::string> members;  // names, in the order of their ranks
  std::optional<PlanStamp> plan_accepted;
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> total_steps;
  std::optional<double> loss;
  std::optional<double> samples_per_second;
  std::optional<double> accuracy;
  std::vector<api::Evaluation> evaluations;  // by step, the last ones that its members know
  std::optional<std::int64_t> batch_size;    // samples in a step, > 0
  std::optional<int> learners_asked;         // number that the program wants to train on
  std::optional<ReportedCheckpoint> last_checkpoint;
  std::vector<ReportedLearner> learners;
  std::vector<ReportedResize> resizes;
  std::optional<ReportedSpeed> speed;
  std::string problem_reason;  // of a fixed set; empty if there is none
  std::string problem_message;
  std::string parameters_sha256;
  bool operator==(const Progress&) const = default;
};

// kInvalid names the field that is wrong.
Result<Progress> DecodeProgress(std::string_view body);
std::string EncodePlan(const CoordinatorPlan& plan);

}  // namespace pliant::controller
