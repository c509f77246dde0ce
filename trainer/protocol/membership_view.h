#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/collective/peer_transport.h"
#include "trainer/membership/types.h"

namespace pliant {

// Why a learner aborts its membership.
struct Loss {
  std::vector<LearnerId> accused;  // each once; empty: a peer aborted
  std::string cause;               // for the first accused one

  // `other` came later. A loss that accuses a learner tells more than the abort of a peer.
  void Merge(const Loss& other);
  bool operator==(const Loss&) const = default;
};

// The memberships of one learner: the one that it takes part in, the proposed one, and the one that
// it enters once it is free to. Decides how a frame of any of them is handled. Without I/O.
class MembershipView {
 public:
  struct Proposal {
    Membership membership;
    std::optional<MembershipId> replaces;
    bool prepared = false;  // connected to all of its members
  };
  // The decision on a frame.
  enum class Disposition {
    kDeliver,       // it belongs to the current membership
    kHold,          // it arrived early
    kHoldAndEnter,  // the same, and it shows that the proposed membership has begun
    kSetFree,       // all members of the membership that released this learner hold the state
    kDrop,
  };
  // The parts of the learner's progress that matter for a frame.
  struct Standing {
    bool stopped = false;      // it aborted its membership
    bool released = false;     // the newest membership does not contain it
    bool frames_wait = false;  // early frames must be handled first
  };

  explicit MembershipView(LearnerId self) : self_(std::move(self)) {}

  // ---- The current one: the learner takes part in it, or did last. 0.0: none ----
  const Membership& current() const { return current_; }
  int rank() const { return *RankOf(self_); }
  // Like Membership::RankOf, but fast: it is called for each frame.
  std::optional<int> RankOf(const LearnerId& learner) const;
  const LearnerId& member(int rank) const {
    return current_.members[static_cast<std::size_t>(rank)].id;
  }
  bool IsSelf(const LearnerId& id) const { return id == self_; }
  // The newest membership entered or switched to; this learner may not be a member of it.
  const std::optional<Membership>& newest() const { return newest_; }
  bool IsNews(MembershipId id) const { return !newest_ || id > newest_->id; }

  // `previous_members`: from MembersToAnswerFor; empty if it is not entered at a boundary.
  void Enter(Membership membership, std::vector<Member> previous_members);
  // Switches to a membership that does not contain this learner.
  void Release(const Membership& membership);
  // Returns, once, the members that left at a boundary and may now exit: all that stayed hold the
  // state again. Empty while one of those is behind.
  std::vector<Member> TakeLeavers(const std::vector<bool>& in_sync);
  // The members to wait for or to notify when `next` is entered at a boundary: those in sync must
  // hold the state again, those that leave are notified that they may exit. Includes those of the
  // boundary before that were not answered yet.
  std::vector<Member> MembersToAnswerFor(const Membership& next,
                                         const std::vector<bool>& in_sync) const;

  // ---- The proposed one ----
  // Returns whether it is new for this learner.
  bool Propose(Membership membership, std::optional<MembershipId> replaces);
  bool Withdraw(MembershipId id);
  const std::optional<Proposal>& proposal() const { return proposal_; }
  // Returns whether it was not prepared before.
  bool SetPrepared();
  // Whether all members stay, as far as this learner knows.
  bool AllStay() const;
  // Sets the announcement for the next trailer of rank 0.
  void SetAnnouncement(Membership membership) { announcement_ = std::move(membership); }
  const std::optional<Membership>& announcement() const { return announcement_; }

  // ---- Events that wait until the learner's state stops changing ----
  bool MayEnter(MembershipId id) const;
  void PutOffEntry(Membership membership) { entry_ = std::move(membership); }
  bool entry_put_off() const { return entry_.has_value(); }
  std::optional<Membership> TakeEntry() { return std::exchange(entry_, std::nullopt); }
  void PutOffLoss(Loss loss);
  bool loss_put_off() const { return loss_.has_value(); }
  std::optional<Loss> TakeLoss() { return std::exchange(loss_, std::nullopt); }

  // ---- Peers ----
  Disposition DispositionOf(const FrameHeader& header, Standing standing) const;
  bool ComesEarly(const FrameHeader& header) const { return IsNews(header.membership); }
  std::set<LearnerId> NeededPeers() const;

 private:
  void DropOldProposal(MembershipId entered);

  const LearnerId self_;
  Membership current_;
  std::map<LearnerId, int> ranks_;  // in current_
  std::optional<Membership> newest_;
  std::vector<Member> previous_members_;  // see MembersToAnswerFor
  std::optional<Proposal> proposal_;
  std::optional<Membership> announcement_;
  std::optional<Membership> entry_;
  std::optional<Loss> loss_;
};

}  // namespace pliant
