#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pliant {

// One process of one learner pod. A pod that restarts its process is another learner, and so is a
// pod that reuses a name. A learner with several GPUs has one process for each: its ranks, which
// differ only in `local_rank`, and join and leave together.
struct LearnerId {
  std::string name;         // the pod's name, never reused within a job
  std::string pod_uid;      // empty without Kubernetes
  std::uint64_t nonce = 0;  // random, drawn when the learner starts
  int local_rank = 0;

  auto operator<=>(const LearnerId&) const = default;
};

inline constexpr int kMaxRanksPerLearner = 16;

bool SameLearner(const LearnerId& a, const LearnerId& b);  // any of its ranks

// "name/nonce in hex", and the local rank if it is not 0: for logs and errors.
std::string ToString(const LearnerId& id);

// Increases with every membership of a job: first by coordinator (term), then by its counter.
struct MembershipId {
  // Identifies the issuing coordinator; the operator raises it before it creates a coordinator.
  std::uint64_t term = 0;
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

// The learners that train: the rank of a member is its index.
struct Membership {
  MembershipId id;
  std::vector<Member> members;

  bool operator==(const Membership&) const = default;
  std::optional<int> RankOf(const LearnerId& learner) const;
  int world_size() const { return static_cast<int>(members.size()); }
  int learners() const;  // number of learners whose ranks these are
};

// The index of a round of work that ends with a trailer: an optimizer step, or a slice of an
// evaluation. It numbers all rounds of a job from 0; trainer/data tells which epoch and which
// optimizer step a tick belongs to. "Applied ticks" n means that ticks 0..n-1 are committed, so n
// is also the next tick.
using Tick = std::uint64_t;

}  // namespace pliant
