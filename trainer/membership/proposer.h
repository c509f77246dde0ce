#pragma once

#include <optional>
#include <set>
#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/coordinator_options.h"
#include "trainer/membership/membership_history.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/rules.h"
#include "trainer/membership/types.h"

namespace pliant {

// A membership that its members prepare for.
struct Proposal {
  Membership membership;
  std::optional<MembershipId> replaces;
  std::set<LearnerId> leavers;  // members of it all the same: bridges
  std::set<LearnerId> prepared;
  TimePoint requested{};
  TimePoint deadline{};
  std::optional<LearnerId> announced_to;  // whose trailer announces it
};

// Who is to train next, by plan and by what learners say; and whether all of them are prepared.
class Proposer {
 public:
  explicit Proposer(const CoordinatorOptions& options) : options_(options) {}

  const std::optional<Proposal>& proposal() const { return proposal_; }
  bool Proposes(const LearnerId& id) const;  // it is a member of the proposal
  bool announced() const { return proposal_ && proposal_->announced_to; }
  // The members of it, once it was announced: they may have entered it.
  std::optional<Membership> announced_membership() const;

  struct Draft {
    std::vector<Member> members;
    bool somebody_leaves = false;
  };
  // Whom to propose now; none: the current membership is right, or it is too early for another.
  std::optional<Draft> Next(const Roster& roster, const MembershipHistory& history, TimePoint now);
  // Makes it the proposal.
  const Proposal& Begin(Draft draft, MembershipId id, const Roster& roster,
                        const MembershipHistory& history, TimePoint now);
  // Whether the proposal was waiting for it.
  bool OnPrepared(const LearnerId& id, MembershipId membership);

  enum class Verdict {
    kWait,      // for members to prepare
    kAnnounce,  // all are prepared
    kWithdraw,  // somebody does not want to, or took too long
  };
  struct Check {
    Verdict verdict = Verdict::kWait;
    std::vector<LearnerId> late;  // joiners that did not prepare in time
    bool operator==(const Check&) const = default;
  };
  Check CheckProposal(const Roster& roster, const MembershipHistory& history, TimePoint now);
  // Notes to whom it is announced, of the membership that it replaces; none: nobody can be reached.
  std::optional<LearnerId> Announce(const Roster& roster, const MembershipHistory& history);

  void Drop() { proposal_.reset(); }
  void ClearRequest() { requested_.reset(); }

 private:
  // What becomes of the current members; none while that is not clear.
  std::optional<std::vector<MemberDisposition>> Dispositions(const Roster& roster,
                                                             const Membership& current,
                                                             TimePoint now) const;

  const CoordinatorOptions options_;
  std::optional<Proposal> proposal_;
  std::optional<TimePoint> requested_;  // since when another membership is wanted
  TimePoint propose_after_{};
};

}  // namespace pliant
