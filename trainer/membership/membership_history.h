#pragma once

#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/types.h"

namespace pliant {

// The current membership, which of its members hold the state, and earlier memberships whose
// members may hold a newer one.
class MembershipHistory {
 public:
  // The newest membership that a learner entered or was sent to enter. Without members: those of
  // its predecessor write a checkpoint and leave. None: no learner trains.
  const std::optional<Membership>& current() const { return current_; }
  bool training() const { return current_ && !current_->members.empty(); }
  bool IsMember(const LearnerId& id) const;
  bool by_recovery() const { return by_recovery_; }  // of the current one, until all opened it
  Tick furthest() const { return furthest_; }        // the most ticks reported by a current member
  TimePoint advanced_at() const { return advanced_at_; }  // when furthest() grew

  // ---- Events ----
  void MakeCurrent(Membership membership, bool by_recovery, TimePoint now);
  // Its members may have entered it, although another one becomes current.
  void AddSuperseded(Membership membership);
  // A learner reported a membership older than the current one. Ignored if all opened the current
  // one.
  void Observe(const Membership& membership);
  // A member opened the current membership. Returns whether it was also a member of the previous
  // one.
  bool AddOpened(const LearnerId& id, Tick applied_ticks);
  // All opened it: no member depends on members of earlier ones.
  void DropSuperseded();
  void OnProgress(const LearnerId& id, const Progress& progress, TimePoint now);
  void Clear();  // all were lost
  // If memberships follow each other and none opens, drops superseded ones whose members are all
  // gone or also in newer ones. Bounds their number by the number of learners.
  void Trim(const Roster& roster);

  // ---- Questions ----
  bool HasOpened(const LearnerId& id) const { return opened_.contains(id); }
  bool AllOpened() const;
  bool AllOpenedOrCatchUp() const;
  // Learners that opened the last membership that all had opened, or a later one: each holds the
  // newest state, or one that is about a tick behind.
  const std::set<LearnerId>& state_holders() const { return state_holders_; }
  // Whether a connected member opened the current membership, so that no committed state is lost
  // with members that cannot be reached.
  bool StateIsSafe(const Roster& roster) const;
  // Whether no member of an earlier membership is still working: its last checkpoint is written.
  bool Drained(const Roster& roster, Duration max_silence, TimePoint now) const;
  // Whether it is a member of the current membership or a superseded one.
  bool Contains(const LearnerId& id) const;
  // All learners that may hold the newest state or will enter `announced`, in the order of their
  // future ranks.
  std::vector<Member> Candidates(const Roster& roster,
                                 const std::optional<Membership>& announced) const;
  // Rank 0 should hold the state, with all ranks of its learner: otherwise the others wait for it.
  void OrderStateHoldersFirst(std::vector<Member>& members) const;

 private:
  std::optional<Membership> current_;
  std::deque<Membership> superseded_;  // oldest first, back to the last one that all had opened
  std::set<LearnerId> opened_;         // members of the current one that opened it
  std::set<LearnerId> catching_up_;    // members of the current one that still receive the state
  std::set<LearnerId> state_holders_;
  bool by_recovery_ = false;
  Tick furthest_ = 0;
  TimePoint advanced_at_{};
};

}  // namespace pliant
