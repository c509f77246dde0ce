#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "operator/api/time.h"

// The state of the cluster at one moment, as the timeline records it: values of subjects.
namespace pliant::history {

using api::WallTime;

enum class Kind : std::uint8_t {
  kJob,
  kHeld,  // the GPUs of one node that learners of one job hold
  kQueue,
  kPool,
  kNode,
};
inline constexpr int kKinds = 5;
std::string_view ToString(Kind kind);

struct Subject {
  Kind kind = Kind::kJob;
  std::string name;  // "namespace/name" of a job
  std::string node;  // of kHeld only
  auto operator<=>(const Subject&) const = default;
};

// Names in JSON are those of ToString. Times are milliseconds since 1970. An absent value is 0,
// "", or unknown.
enum class Field : std::uint8_t {
  // Jobs have these.
  kQueue,
  kPhase,
  kPriority,
  kCreated,
  kMinGpus,
  kMaxGpus,
  kLearners,
  kDesired,  // learners
  kCode,     // the reason of the condition HasPlace
  kReason,   // a sentence
  kWaitingSince,
  kDemandLearners,
  kLimitedBy,  // a planner::GrowthLimit
  kStart,      // estimated, as kEnd recorded less often
  kEnd,        // estimated while it runs, or when it ended
  kResizes,
  kRestarts,
  // These are statistics of jobs, which are recorded less often.
  kStep,
  kTotalSteps,
  kEpoch,
  kLoss,
  kTestLoss,  // of the last evaluation
  kAccuracy,
  kSpeed,  // samples per second
  // Jobs and nodes have these, in GPUs.
  kGpus,
  kUsed,  // by all pods
  // Nodes, queues and pools have some of these.
  kPool,
  kReady,  // 1: the node is ready and schedulable
  // Queues have these, in GPUs. Jobs have kEntitled, too, a statistic.
  kWeight,
  kGuaranteed,
  kLimit,
  kEntitled,
  kDemand,
  kAllocated,
  kBorrowed,
  kLent,
  kWaiting,  // jobs
  kRunning,  // jobs
  // Pools have these, in GPUs.
  kCapacity,
  kForeign,
  kYielded,
  kReserved,
};
inline constexpr int kFields = 42;
std::string_view ToString(Field field);

using Value = std::variant<std::int64_t, double, std::string>;
using Values = std::map<Field, Value>;
using Frame = std::map<Subject, Values>;

// A subject's values that changed; a value without content is absent from now on.
struct Change {
  std::uint64_t sequence = 0;  // 1 for the first change of the timeline
  WallTime at;
  Subject subject;
  bool gone = false;  // the subject
  std::map<Field, std::optional<Value>> values;
  bool operator==(const Change&) const = default;
};

// Applies a change to the state before it.
void Apply(const Change& change, Frame& frame);

}  // namespace pliant::history
