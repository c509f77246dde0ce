#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lifetime.h"
#include "base/result.h"
#include "trainer/checkpoint/checkpointer.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/opening.h"
#include "trainer/protocol/state_server.h"
#include "trainer/protocol/state_transfer.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/tasks.h"
#include "trainer/runtime/volume_retry.h"

namespace pliant {

// The opening of one membership by one of its members: says what it holds, and hears it of the
// others; rank 0 finds what to begin from: a state that a member holds or, when nobody came here by
// a boundary, the newest checkpoint, which it reads as a whole. Lives until all are ready, or the
// membership is given up.
class OpeningRun {
 public:
  // Calls come within calls to the run, and from the event loop. The owner destroys the run only
  // when they are over.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Advance is to be called.
    virtual void OnOpeningNews() = 0;
    // Ticks may begin: Advance says so again and again until they do.
    virtual void OnReady() = 0;
    virtual void OnAbsent(const std::vector<int>& ranks) = 0;
    virtual void OnViolation(int rank, std::string cause) = 0;
    virtual void Fail(const Error& error) = 0;
    // Nobody holds a state, and there is no checkpoint: the program's first one is to begin from.
    virtual void OnFreshStart() = 0;
    // The program is to go on from this state; then OnLoaded is to be called.
    virtual void LoadState(std::shared_ptr<const StateCopy> state, StateSummary holding) = 0;
  };
  struct Parts {  // borrowed
    Tasks& tasks;
    Compute& compute;
    Checkpointer& checkpointer;
    const Schedule& schedule;
    Peers& peers;
    StateServer& states;
    VolumeRetry& volume_retry;
    Owner& owner;
  };
  struct Options {
    MembershipId membership;
    int world_size = 1;
    int self = 0;  // rank
    JobIdentity job;
    bool bitwise = true;
    Duration timeout{};  // to be connected to all members
  };

  OpeningRun(Options options, Parts parts, StateSummary own);

  // Says what it holds to those that are connected, and waits for the others.
  void Begin();
  // Does what can be done. Not while a state is being loaded.
  void Advance();

  void OnConnected(int rank);
  // The link is to be made again. False: it broke too often; the membership is to be given up.
  bool OnLost(int rank);
  // kInvalid: not what the rank has to send.
  Status OnOpenFrame(int rank, const Frame& frame);
  void OnOpenedFrame(int rank);
  void OnStateFrame(int rank, const Frame& frame);
  // Sends this one's state, from its beginning.
  void ServeState(int rank, bool has_state, Tick applied);
  void OnLoaded(const StateSummary& holding);

  const Opening& opening() const { return opening_; }

 private:
  void CheckConnections();  // now, and from now on
  void Fetch(int source);
  void LookForCheckpoint();
  void Look();
  bool LooksAgain(const Error& error);  // after a pause; false: it was tried often enough
  void OnNewest(const Result<StoredCheckpoint>& newest);
  void GoOnWithout(const Error& error);  // fails, where nobody holds a state
  void OnRestored(Result<Restored> restored);
  bool IsOfThisSchedule(const TrainingPosition& position) const;
  void Settle();  // nothing is ahead of what the members hold
  void SayWhatItHolds() {
    parts_.peers.SendToAll(FrameKind::kOpen, EncodeStateSummary(opening_.own()));
  }

  const Options options_;
  const Parts parts_;
  Opening opening_;
  std::map<int, TimePoint> missing_since_;  // ranks without a connection
  // Of the state that is fetched from another member.
  std::optional<int> fetching_from_;
  std::shared_ptr<StateCopy> fetched_;
  std::optional<StateReceiver> receiver_;  // into it
  // At the checkpoints.
  bool looking_ = false;
  bool answer_awaited_ = false;  // for kVolumeTimeout: which is the newest
  Lifetime look_;                // until it is known
  const Lifetime lifetime_;
};

}  // namespace pliant
