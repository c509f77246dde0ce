#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "trainer/membership/evaluation.h"
#include "trainer/membership/types.h"

// The messages between learners and their coordinator (docs/contracts.md §4), as values and as
// JSON.
namespace pliant {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kMaxMessageBytes = 256 << 10;

// Properties that must be equal on all learners of a job: "gpu", "cpu", "framework", ...
using Fingerprint = std::map<std::string, std::string>;

// ---- From a learner ----

// The first message on every connection: the learner's model is built, and it can take part.
struct Hello {
  int protocol = kProtocolVersion;
  LearnerId learner;
  int ranks = 1;        // number of ranks of its learner
  std::string address;  // of its peer transport
  Fingerprint fingerprint;
  // The newest membership it entered, with its members: a new coordinator rebuilds its state from
  // it.
  std::optional<Membership> membership;
  // The last one of which it was a member, if it is not in `membership` and its state may still be
  // needed.
  std::optional<Membership> before;
  Tick applied_ticks = 0;
  bool has_state = false;
  bool leaving = false;
  bool done = false;  // all ticks are applied
  bool operator==(const Hello&) const = default;
};

// The learner is connected to all other members of the proposal.
struct Prepared {
  MembershipId membership;
  bool operator==(const Prepared&) const = default;
};

// The learner has switched to a membership, which opens now.
struct Entered {
  Membership membership;
  Tick applied_ticks = 0;
  bool operator==(const Entered&) const = default;
};

// The learner holds the state, and has committed a tick with all others in sync (or no tick is
// left).
struct Opened {
  MembershipId membership;
  Tick applied_ticks = 0;
  double pause_seconds = 0;      // from the last commit before it to the first one in it
  std::uint64_t ticks_lost = 0;  // committed by this learner before, and to be repeated
  bool operator==(const Opened&) const = default;
};

// The learner wants to leave at the next boundary, and exits after the grace period at the latest.
struct Leaving {
  double grace_seconds = 0;
  bool operator==(const Leaving&) const = default;
};

// The running tick (or the opening) of the membership is aborted.
struct Lost {
  MembershipId membership;
  Tick tick = 0;
  std::vector<LearnerId> accused;  // empty: another member aborted it
  std::string cause;
  bool operator==(const Lost&) const = default;
};

struct CheckpointReport {
  std::uint64_t step = 0;
  MembershipId membership;
  double unix_seconds = 0;
  // The error of the last attempt, if it failed; the other fields describe the last success.
  std::string error;
  std::string reason;  // "VolumeFull", "VolumeReadOnly", "WriteFailed"
  bool operator==(const CheckpointReport&) const = default;
};

// The time that a member spent, as means over the ticks since its last heartbeat.
struct TickTimes {
  double shard_seconds = 0;      // time to compute one shard
  double compute_seconds = 0;    // time to compute its shards
  double data_wait_seconds = 0;  // part of compute_seconds, for their samples
  double wait_seconds = 0;       // wait for the shards of others, and for the reduction
  double commit_seconds = 0;
  double sent_bytes = 0;  // to peers
  double received_bytes = 0;
  bool operator==(const TickTimes&) const = default;
};

// Heartbeat of every learner; rank 0 fills in `stats`.
struct Progress {
  std::optional<MembershipId> membership;  // the one it takes part in now
  Tick tick = 0;                           // applied ticks
  std::uint64_t step = 0;
  bool following = false;          // it catches up: the others continue without it
  std::optional<TickTimes> times;  // none: no tick since the last heartbeat
  struct Stats {
    std::uint64_t epoch = 0;
    std::uint64_t total_steps = 0;
    std::uint64_t samples = 0;  // training samples of the committed steps
    std::optional<double> loss;
    std::optional<double> samples_per_second;
    std::optional<double> noise_scale;    // in samples
    std::uint64_t batch_size = 0;         // samples in a step of the epoch; at least 1
    std::vector<Evaluation> evaluations;  // the last ones that it saw, by step
    std::optional<CheckpointReport> last_checkpoint;
    std::optional<int> learners_asked;  // number that the program wants
    bool operator==(const Stats&) const = default;
  };
  std::optional<Stats> stats;
  bool operator==(const Progress&) const = default;
};

enum class LeftReason { kDrained, kCompleted, kFailed };
std::string_view ToString(LeftReason reason);

// The last message: the learner is about to exit.
struct Left {
  Tick applied_ticks = 0;
  LeftReason reason = LeftReason::kDrained;
  std::string message;
  std::string parameters_sha256;  // with kCompleted
  bool operator==(const Left&) const = default;
};

using LearnerMessage =
    std::variant<Hello, Prepared, Entered, Opened, Leaving, Lost, Progress, Left>;

// ---- From the coordinator ----

// The hello was accepted.
struct Welcome {
  std::uint64_t term = 0;
  double heartbeat_seconds = 0;  // the longest time between two Progress
  bool operator==(const Welcome&) const = default;
};

// The learner must exit, with this message.
struct Refused {
  std::string reason;
  std::string message;
  bool operator==(const Refused&) const = default;
};

// A proposal: connect to its other members, then answer Prepared.
struct Prepare {
  Membership membership;
  std::optional<MembershipId> replaces;  // none: the first, or after all were lost
  bool operator==(const Prepare&) const = default;
};

// All are prepared. Sent to rank 0 of the replaced membership, which announces the switch in its
// next trailer. If it replaces none, sent to all its members, which enter it.
struct Announce {
  Membership membership;
  std::optional<MembershipId> replaces;
  bool operator==(const Announce&) const = default;
};

// The proposal is withdrawn.
struct Withdraw {
  MembershipId membership;
  bool operator==(const Withdraw&) const = default;
};

// Enter at once, in the middle of a tick.
struct Recover {
  Membership membership;
  bool operator==(const Recover&) const = default;
};

// The learner is no longer wanted.
struct Leave {
  bool at_once = false;  // nothing depends on it; otherwise a member leaves at the next boundary
  bool operator==(const Leave&) const = default;
};

using CoordinatorMessage =
    std::variant<Welcome, Refused, Prepare, Announce, Withdraw, Recover, Leave>;

// ---- JSON ----

std::string Encode(const LearnerMessage& message);
std::string Encode(const CoordinatorMessage& message);

// kInvalid, with the field named. Unknown fields are ignored.
Result<LearnerMessage> DecodeLearnerMessage(std::string_view json);
Result<CoordinatorMessage> DecodeCoordinatorMessage(std::string_view json);

// A membership as a text of its own: a trailer announces a switch with it.
std::string EncodeMembership(const Membership& membership);
Result<Membership> DecodeMembership(std::string_view json);

// "term.counter".
Result<MembershipId> ParseMembershipId(std::string_view text);

// The name on the wire, for logs: "hello", "prepare", ...
std::string_view NameOf(const LearnerMessage& message);
std::string_view NameOf(const CoordinatorMessage& message);

}  // namespace pliant
