#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pliant {

// One process of one learner pod. A pod that restarts its process, or a name used by another pod,
// is another learner. A learner of several GPUs has a process for each: its ranks, which differ in
// `local_rank` alone, and join and leave together.
struct LearnerId {
  std::string name;         // the pod's name, never reused within a job
  std::string pod_uid;      // empty when it runs without Kubernetes
  std::uint64_t nonce = 0;  // drawn at the learner's start
  int local_rank = 0;

  auto operator<=>(const LearnerId&) const = default;
};

inline constexpr int kMaxRanksPerLearner = 16;

bool SameLearner(const LearnerId& a, const LearnerId& b);  // whichever of its ranks

// "name/nonce in hex", and the local rank if it is not 0: for logs and errors.
std::string ToString(const LearnerId& id);

// Grows with every membership of a job: first by coordinator (term), then by its counter.
struct MembershipId {
  std::uint64_t term =
      0;  // of the coordinator that issued it; raised by the operator before it creates one
  std::uint64_t counter = 0;  // persisted by the coordinator before it is sent

  auto operator<=>(const MembershipId&) const = default;
};

// "term.counter", as logs, metrics and checkpoints show it.
std::string ToString(MembershipId id);

struct Member {
  LearnerId id;
  std::string address;  // "ip:port" of its peer transport

  bool operator==(const Member&) const = default;
};

// Who trains: the rank of a member is its index.
struct Membership {
  MembershipId id;
  std::vector<Member> members;

  bool operator==(const Membership&) const = default;
  std::optional<int> RankOf(const LearnerId& learner) const;
  int world_size() const { return static_cast<int>(members.size()); }
  int learners() const;  // whose ranks they are
};

// The index of a round of work that ends with a trailer: an optimizer step, or a slice of an
// evaluation. It numbers all rounds of a job from 0; trainer/data tells which epoch and which
// optimizer step a tick belongs to. "Applied ticks" n means that ticks 0..n-1 are committed, so n
// is also the next tick.
using Tick = std::uint64_t;

}  // namespace pliant
