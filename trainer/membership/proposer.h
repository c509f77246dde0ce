#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/coordinator_options.h"
#include "trainer/membership/membership_history.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/rules.h"
#include "trainer/membership/types.h"

namespace pliant {

// A membership for which its members prepare.
struct Proposal {
  Membership membership;
  std::optional<MembershipId> replaces;
  std::string reason;           // a sentence; empty: the plan has none
  std::set<LearnerId> leavers;  // bridges: members that stay only to pass on the state
  std::set<LearnerId> prepared;
  TimePoint requested{};
  TimePoint deadline{};
  std::optional<LearnerId> announced_to;  // whose trailer announces it
};

// Chooses the next membership from the plan and the learners' messages, and tracks whether its
// members are prepared.
class Proposer {
 public:
  explicit Proposer(const CoordinatorOptions& options) : options_(options) {}

  const std::optional<Proposal>& proposal() const { return proposal_; }
  bool Proposes(const LearnerId& id) const;  // it is a member of the proposal
  bool announced() const { return proposal_ && proposal_->announced_to; }
  // The proposed membership, once it was announced: its members may have entered it.
  std::optional<Membership> announced_membership() const;

  struct Draft {
    std::vector<Member> members;
    bool somebody_leaves = false;
  };
  // The members to propose now; none: the current membership is right, or it is too early for
  // another.
  std::optional<Draft> Next(const Roster& roster, const MembershipHistory& history, TimePoint now);
  // Makes the draft the proposal.
  const Proposal& Begin(Draft draft, MembershipId id, const Roster& roster,
                        const MembershipHistory& history, TimePoint now);
  // Returns whether the proposal waits for this learner.
  bool OnPrepared(const LearnerId& id, MembershipId membership);

  enum class Verdict {
    kWait,      // for members to prepare
    kAnnounce,  // all are prepared
    kWithdraw,  // a member is gone or no longer wanted, or took too long
  };
  struct Check {
    Verdict verdict = Verdict::kWait;
    std::vector<LearnerId> late;  // joiners that did not prepare in time
    bool operator==(const Check&) const = default;
  };
  Check CheckProposal(const Roster& roster, const MembershipHistory& history, TimePoint now);
  // Selects the member of the replaced membership that announces the proposal; none: no member can
  // be reached.
  std::optional<LearnerId> Announce(const Roster& roster, const MembershipHistory& history);

  void Drop() { proposal_.reset(); }
  void ClearRequest() { requested_.reset(); }

 private:
  // The fate of each current member; none while that is not clear.
  std::optional<std::vector<MemberDisposition>> Dispositions(const Roster& roster,
                                                             const Membership& current,
                                                             TimePoint now) const;

  const CoordinatorOptions options_;
  std::optional<Proposal> proposal_;
  std::optional<TimePoint> requested_;  // the time since which another membership is wanted
  TimePoint propose_after_{};
};

}  // namespace pliant
