#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/membership/coordinator_options.h"
#include "trainer/membership/fault_evidence.h"
#include "trainer/membership/job_report.h"
#include "trainer/membership/membership_history.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/plan.h"
#include "trainer/membership/proposer.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/types.h"

namespace pliant {

// The effects that the coordinator's process carries out, in this order.

// Write the counter to stable storage; later effects may happen only once it is stored.
struct PersistCounter {
  std::uint64_t counter = 0;
  bool operator==(const PersistCounter&) const = default;
};
struct SendMessage {
  ConnectionId connection = 0;
  CoordinatorMessage message;
  bool operator==(const SendMessage&) const = default;
};
// Send the queued messages, then close. No Disconnected is reported for it.
struct CloseConnection {
  ConnectionId connection = 0;
  bool operator==(const CloseConnection&) const = default;
};
using CoordinatorEffect = std::variant<PersistCounter, SendMessage, CloseConnection>;
using CoordinatorEffects = std::vector<CoordinatorEffect>;

// Decides which learners train; the only source of memberships in a job. A state machine without
// I/O: its owner reports events and carries out the effects that each call returns. Calls come from
// one thread, with the time of its event loop.
class CoordinatorCore {
 public:
  CoordinatorCore(const CoordinatorOptions& options, TimePoint now);

  // Takes a plan of the operator. kConflict if a newer one was accepted before.
  Result<CoordinatorEffects> SetPlan(const Plan& plan, TimePoint now);
  // The first message of a connection is Hello; anything else before it closes the connection.
  CoordinatorEffects OnMessage(ConnectionId connection, const LearnerMessage& message,
                               TimePoint now);
  CoordinatorEffects OnDisconnected(ConnectionId connection, TimePoint now);
  // Call it every kPollInterval: it makes all decisions that wait for time to pass.
  CoordinatorEffects OnTimer(TimePoint now);

  static constexpr Duration kPollInterval = std::chrono::milliseconds(100);

  JobProgress progress() const;

 private:
  // ---- Messages of learners ----
  void OnHello(ConnectionId connection, const Hello& hello, TimePoint now);
  void On(const LearnerRecord&, const Hello&, TimePoint) {}  // a second one is ignored
  void On(const LearnerRecord& learner, const Prepared& prepared, TimePoint now);
  void On(const LearnerRecord& learner, const Entered& entered, TimePoint now);
  void On(const LearnerRecord& learner, const Opened& opened, TimePoint now);
  void On(const LearnerRecord& learner, const Leaving& leaving, TimePoint now);
  void On(const LearnerRecord& learner, const Lost& lost, TimePoint now);
  void On(const LearnerRecord& learner, const Progress& progress, TimePoint now);
  void On(const LearnerRecord& learner, const Left& left, TimePoint now);
  // A learner has entered `membership`.
  void Observe(const Membership& membership, TimePoint now);
  bool IsCurrent(MembershipId id) const;

  // ---- Decisions ----
  // Makes all decisions from the current knowledge; returns all effects since the last call.
  CoordinatorEffects Decide(TimePoint now);
  void CloseSilent(TimePoint now);
  bool Rebuilt(TimePoint now);
  void TryRecover(TimePoint now);
  void OnAllLost();
  void CheckProposal(TimePoint now);
  void Propose(TimePoint now);
  void AnnounceProposal(TimePoint now);
  void WithdrawProposal();
  void MakeCurrent(const Membership& membership, bool by_recovery, TimePoint now);
  void NotifyLeavers(TimePoint now);
  void DismissAll();

  // ---- Effects ----
  void SendCurrent(const LearnerId& id);  // if `id` is a member and has not entered it
  MembershipId NewId();
  void Send(const LearnerId& id, CoordinatorMessage message);  // if it is connected
  void SendLeave(const LearnerId& id, bool at_once);
  void Refuse(ConnectionId connection, const Problem& problem, TimePoint now);
  void Close(const LearnerId& id, TimePoint now);

  const CoordinatorOptions options_;
  const TimePoint started_;
  bool rebuilt_;           // the state was rebuilt from the learners' hellos
  bool obsolete_ = false;  // a later coordinator exists: this one does nothing
  std::uint64_t counter_;

  Roster roster_;              // known learners, and which are wanted
  MembershipHistory history_;  // which learners train, and which hold the state
  FaultEvidence faults_;       // reasons to replace the current membership at once
  Proposer proposer_;          // the next membership
  JobReport report_;           // the progress reported to the operator
  CoordinatorEffects effects_;
};

}  // namespace pliant
