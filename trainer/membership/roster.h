#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/plan.h"
#include "trainer/membership/types.h"

namespace pliant {

// Identifies one WebSocket connection. Never 0, never reused.
using ConnectionId = std::uint64_t;

// The coordinator's record of one learner, or of one rank of a learner with several.
struct LearnerRecord {
  LearnerId id;
  int ranks = 1;  // number of ranks of its learner
  std::string address;
  Fingerprint fingerprint;

  ConnectionId connection = 0;        // 0: none
  TimePoint heard{};                  // time of the last message
  TimePoint connection_changed_at{};  // when the connection began or, if there is none, ended

  MembershipId entered;  // the newest membership it is known to have entered; 0.0: none
  Tick applied_ticks = 0;
  std::optional<std::uint64_t> step;  // none: not reported yet
  std::optional<TickTimes> times;     // as reported last

  bool leaving = false;            // it requested to leave, or was asked to
  bool leave_sent = false;         // on this connection: Leave at a boundary
  bool leave_now_sent = false;     // on this connection: Leave at once
  bool refused = false;            // its last hello was refused
  std::optional<LeftReason> left;  // the reason it sent before it exited
  bool ended = false;              // its process or pod is gone
  bool listed = false;             // a plan has listed it at some time

  int missed_proposals = 0;   // in a row, not prepared in time
  int evictions = 0;          // restarts from 0 an hour after the last back-off ended
  TimePoint backoff_until{};  // it may not join until then

  bool connected() const { return connection != 0; }
  bool gone() const { return left.has_value() || ended; }
};

// The learners of a job, and which of them the operator wants. Only the methods change records; a
// reference to a record is valid until Forget.
class Roster {
 public:
  using Learners = std::map<LearnerId, LearnerRecord>;

  // Applies a plan: learners whose pods have ended are gone.
  void SetPlan(const Plan& plan);
  const std::optional<Plan>& plan() const { return plan_; }
  bool Wanted(const LearnerRecord& learner) const;  // by the plan; without a plan no learner is
  bool LeavesByItself(const LearnerRecord& learner) const;  // although the plan wants it
  // Whether all learners of the plan that may be alive have sent a hello.
  bool AllOfPlanConnected() const;

  const Learners& learners() const { return learners_; }
  const LearnerRecord* Find(const LearnerId& id) const;
  const LearnerRecord& At(const LearnerId& id) const;  // of a known learner
  const LearnerRecord* OfConnection(ConnectionId connection) const;
  bool Connected(const LearnerId& id) const;
  // Whether all ranks of its learner are connected.
  bool Complete(const LearnerRecord& rank) const;
  // The longest time that a member computed in a tick, as they reported it last; 0: none did.
  double LongestComputeSeconds(const Membership& membership) const;
  // Removes the ranks of learners that do not have all their ranks among `members`.
  void RemoveIncompleteLearners(std::vector<Member>& members) const;

  // Adds a record if there is none.
  void Add(const LearnerId& id, TimePoint now);
  // A learner's hello was accepted. Returns the connections that it replaces: of this process, and
  // of earlier processes of its pod, which have ended.
  std::vector<ConnectionId> Connect(ConnectionId connection, const Hello& hello, TimePoint now);
  void Disconnect(const LearnerId& id, TimePoint now);
  void Refuse(const LearnerId& id, TimePoint now);

  // ---- Messages of learners ----
  void RecordHeard(const LearnerId& id, TimePoint now);
  void SetEntered(const LearnerId& id, MembershipId membership);
  void SetAppliedTicks(const LearnerId& id, Tick applied_ticks);
  void SetWork(const LearnerId& id, std::uint64_t step, const std::optional<TickTimes>& times);
  void ClearStep(const LearnerId& id);
  void SetLeft(const LearnerId& id, LeftReason reason);
  void SetPrepared(const LearnerId& id);

  // ---- Decisions of the coordinator ----
  void MarkLeaving(const LearnerId& id);  // with all ranks of its learner
  void MarkLeaveSent(const LearnerId& id, bool at_once);
  // A learner that did not prepare in time, with all its ranks, may not join for a while.
  void BackOff(const LearnerId& id, TimePoint now);
  // The same for an evicted learner, for longer, since each eviction costs a recovery.
  void Quarantine(const LearnerId& id, TimePoint now);
  void ClearBackoffs();
  // Drops records of learners that are gone or were away for long, unless they are in use.
  void Forget(const std::function<bool(const LearnerId&)>& in_use, TimePoint now);

 private:
  // The state in the plan; none: the plan does not list it.
  std::optional<WantedState> PlannedState(const LearnerId& id) const;
  LearnerRecord& Mutable(const LearnerId& id);
  std::vector<LearnerRecord*> RanksOf(const LearnerId& rank);  // the known ranks of its learner
  void HoldBack(const LearnerId& id, Duration pause, TimePoint now);

  std::optional<Plan> plan_;
  std::map<std::pair<std::string, std::string>, WantedState> planned_;  // by name and pod uid
  Learners learners_;
  std::map<ConnectionId, LearnerId> of_connection_;
};

}  // namespace pliant
