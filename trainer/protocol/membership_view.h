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

// Why a learner gives its membership up.
struct Loss {
  std::vector<LearnerId> accused;  // each once; none: a peer gave up
  std::string cause;               // of the first of them

  // `other` came later. What accuses somebody tells more than that a peer gave up.
  void Merge(const Loss& other);
  bool operator==(const Loss&) const = default;
};

// The memberships of one learner: the one that it takes part in, the one proposed, the one that it
// is to enter when it is free to. Decides what becomes of a frame of any of them. Without I/O.
class MembershipView {
 public:
  struct Proposal {
    Membership membership;
    std::optional<MembershipId> replaces;
    bool prepared = false;  // connected to all of its members
  };
  // What is to be done with a frame.
  enum class Fate {
    kDeliver,       // it is of the present membership
    kHold,          // it came early
    kHoldAndEnter,  // likewise; it says that the proposed membership has begun
    kSetFree,       // all members of the membership that let this learner go hold the state
    kDrop,
  };
  // How far the learner is, as far as that matters for a frame.
  struct Standing {
    bool stopped = false;      // it gave its membership up
    bool released = false;     // the newest membership does not name it
    bool frames_wait = false;  // early frames are to be taken first
  };

  explicit MembershipView(LearnerId self) : self_(std::move(self)) {}

  // ---- The present one: that it takes part in, or took part in last. 0.0: none ----
  const Membership& current() const { return current_; }
  int rank() const { return *RankOf(self_); }
  // As Membership::RankOf; asked for each frame.
  std::optional<int> RankOf(const LearnerId& learner) const;
  const LearnerId& member(int rank) const {
    return current_.members[static_cast<std::size_t>(rank)].id;
  }
  bool IsSelf(const LearnerId& id) const { return id == self_; }
  // Entered, or switched to: not always with this learner in it.
  const std::optional<Membership>& newest() const { return newest_; }
  bool IsNews(MembershipId id) const { return !newest_ || id > newest_->id; }

  // `previous_members`: as MembersToAnswerFor says; none: it is not entered at a boundary.
  void Enter(Membership membership, std::vector<Member> previous_members);
  // Switches to one that does not name this learner.
  void Release(const Membership& membership);
  // Those who left by a boundary, and who may go when those who stayed hold the state again. Taken
  // once none of them is behind.
  std::vector<Member> TakeLeavers(const std::vector<bool>& in_sync);
  // Who must hold the state again in `next`, entered at a boundary, or be told that they may go:
  // all in sync, and all who go; those of the boundary before, too, if they were not answered yet.
  std::vector<Member> MembersToAnswerFor(const Membership& next,
                                         const std::vector<bool>& in_sync) const;

  // ---- The proposed one ----
  // Whether it is news for this learner.
  bool Propose(Membership membership, std::optional<MembershipId> replaces);
  bool Withdraw(MembershipId id);
  const std::optional<Proposal>& proposal() const { return proposal_; }
  // Whether it was not prepared before.
  bool SetPrepared();
  // Whether all members stay, as far as is known.
  bool AllStay() const;
  // For the next trailer, of rank 0.
  void SetAnnouncement(Membership membership) { announcement_ = std::move(membership); }
  const std::optional<Membership>& announcement() const { return announcement_; }

  // ---- What has to wait: until what the learner holds stands still ----
  bool MayEnter(MembershipId id) const;
  void PutOffEntry(Membership membership) { entry_ = std::move(membership); }
  bool entry_put_off() const { return entry_.has_value(); }
  std::optional<Membership> TakeEntry() { return std::exchange(entry_, std::nullopt); }
  void PutOffLoss(Loss loss);
  std::optional<Loss> TakeLoss() { return std::exchange(loss_, std::nullopt); }

  // ---- Peers ----
  Fate FateOf(const FrameHeader& header, Standing standing) const;
  bool ComesEarly(const FrameHeader& header) const { return IsNews(header.membership); }
  std::set<LearnerId> NeededPeers() const;

 private:
  void DropOldProposal(MembershipId entered);

  const LearnerId self_;
  Membership current_;
  std::map<LearnerId, int> ranks_;  // in current_
  std::optional<Membership> newest_;
  std::vector<Member> previous_members_;  // who must hold the state again, or be told to go
  std::optional<Proposal> proposal_;
  std::optional<Membership> announcement_;
  std::optional<Membership> entry_;
  std::optional<Loss> loss_;
};

}  // namespace pliant
