#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "trainer/protocol/opening.h"
#include "trainer/protocol/state_transfer.h"
#include "trainer/runtime/learner_context.h"

namespace pliant {

// One member's part in the opening of a membership: it sends a summary of its state, and receives
// those of the others. Rank 0 finds the state to begin from: one that a member holds or, when
// nobody came here by a boundary, the newest checkpoint, which it reads as a whole. Lives until all
// are ready, or the membership is aborted.
class OpeningRun {
 public:
  // Called from within calls to the run, and from the event loop.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void Fail(const Error& error) = 0;
    // Load this state into the program, then call OnLoaded.
    virtual void LoadState(std::shared_ptr<const StateCopy> state, StateSummary holding) = 0;
  };
  struct Options {
    MembershipId membership;
    int world_size = 1;
    int self = 0;  // rank
    JobIdentity job;
    bool bitwise = true;
    Duration timeout{};  // for connecting to all members
  };

  // For the view's current membership. `parts` and `owner` are borrowed.
  OpeningRun(Options options, const LearnerContext& parts, Owner& owner, StateSummary own);

  // Sends its summary to connected members, and waits for the others.
  void Begin();
  // Takes the next step, if possible. Not to be called while a state is being loaded.
  void Advance();

  void OnConnected(int rank);
  // True: connect again. False: the link broke too often; abort the membership.
  bool OnLost(int rank);
  // kInvalid: not what the rank should send.
  Status OnOpenFrame(int rank, const Frame& frame);
  void OnOpenedFrame(int rank);
  void OnStateFrame(int rank, const Frame& frame);
  // Sends this member's state to `rank`, from the beginning.
  void ServeState(int rank, bool has_state, Tick applied);
  void OnLoaded(const StateSummary& holding);

  const Opening& opening() const { return opening_; }

 private:
  void CheckConnections();  // now, then periodically
  void Fetch(int source);
  void LookForCheckpoint();
  void Look();
  bool LooksAgain(const Error& error);  // after a pause; false: no tries left
  void OnNewest(const Result<StoredCheckpoint>& newest);
  void ContinueWithout(const Error& error);  // fails if nobody holds a state
  void OnRestored(Result<Restored> restored);
  // Optimizer steps before the position of a member's state.
  std::uint64_t StepsBefore(const Position& position) const;
  // kInvalid: the job cannot have come to this position.
  Status CheckPosition(const TrainingPosition& position) const;
  void Settle();  // no checkpoint is ahead of the members' states
  void SayWhatItHolds() {
    parts_.peers.SendToAll(FrameKind::kOpen, EncodeStateSummary(opening_.own()));
  }

  const Options options_;
  const LearnerContext parts_;
  Owner& owner_;
  Opening opening_;
  std::map<int, TimePoint> missing_since_;  // ranks without a connection
  // The state that is being fetched from another member.
  std::optional<int> fetching_from_;
  std::shared_ptr<StateCopy> fetched_;
  std::optional<StateReceiver> receiver_;  // writes to fetched_
  // The search for a checkpoint.
  bool looking_ = false;
  bool answer_awaited_ = false;  // the timer of kVolumeTimeout runs
  Lifetime look_;                // voids callbacks of a search that has ended
  const Lifetime lifetime_;
};

}  // namespace pliant
