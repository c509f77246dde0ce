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

// The current membership, who of it holds the state, and those before it whose members may hold a
// newer one.
class MembershipHistory {
 public:
  // The newest membership that somebody entered, or was told to enter. Without members: those of
  // its predecessor write a checkpoint and leave. None: nobody trains.
  const std::optional<Membership>& current() const { return current_; }
  bool training() const { return current_ && !current_->members.empty(); }
  bool IsMember(const LearnerId& id) const;
  bool by_recovery() const { return by_recovery_; }  // the current one, until all opened it
  Tick furthest() const { return furthest_; }        // that a member of the current one told of
  TimePoint advanced_at() const { return advanced_at_; }  // when that grew

  // ---- What happens ----
  void MakeCurrent(Membership membership, bool by_recovery, TimePoint now);
  // Members of it may have entered it, though another one becomes current.
  void AddSuperseded(Membership membership);
  // A learner tells of a membership older than the current one. What all opened needs no other.
  void Observe(const Membership& membership);
  // A member opened the current membership. Whether it was a member of the one before, too.
  bool AddOpened(const LearnerId& id, Tick applied_ticks);
  // All opened it: nobody depends on those who were members before.
  void DropSuperseded();
  void OnProgress(const LearnerId& id, const Progress& progress, TimePoint now);
  void Clear();  // all were lost
  // Where memberships follow each other and none opens: drops superseded ones of which nobody but
  // members of newer ones may come back. Bounds their number by that of the learners.
  void Trim(const Roster& roster);

  // ---- Questions ----
  bool HasOpened(const LearnerId& id) const { return opened_.contains(id); }
  bool AllOpened() const;
  bool AllOpenedOrCatchUp() const;
  // Who opened the last membership that all had opened, or one after it: each holds the newest
  // state, or one that is a tick or so behind.
  const std::set<LearnerId>& state_holders() const { return state_holders_; }
  // Whether a connected member opened the current membership, so that nothing which was committed
  // is lost with those who cannot be asked.
  bool StateIsSafe(const Roster& roster) const;
  // Whether nobody of an earlier membership is at work any more: its last checkpoint is there.
  bool Drained(const Roster& roster, Duration max_silence, TimePoint now) const;
  // Whether it is a member of the current membership or a superseded one.
  bool Contains(const LearnerId& id) const;
  // All that may hold the newest state, or are to enter `announced`: in the order of the ranks that
  // they get.
  std::vector<Member> Candidates(const Roster& roster,
                                 const std::optional<Membership>& announced) const;
  // Rank 0 is to hold the state, with all ranks of its learner: the others wait for it if it does
  // not.
  void OrderStateHoldersFirst(std::vector<Member>& members) const;

 private:
  std::optional<Membership> current_;
  std::deque<Membership> superseded_;  // oldest first, back to the last one that all had opened
  std::set<LearnerId> opened_;         // members of the current one that did
  std::set<LearnerId> catching_up_;    // members of the current one whose state is on its way
  std::set<LearnerId> state_holders_;
  bool by_recovery_ = false;
  Tick furthest_ = 0;
  TimePoint advanced_at_{};
};

}  // namespace pliant
