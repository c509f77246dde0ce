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

// Names one WebSocket connection, from its acceptance to its end. Never 0, never reused.
using ConnectionId = std::uint64_t;

// What the coordinator knows of one learner: of one of its ranks, where it has several.
struct LearnerRecord {
  LearnerId id;
  int ranks = 1;  // of its learner
  std::string address;
  Fingerprint fingerprint;

  ConnectionId connection = 0;        // 0: none
  TimePoint heard{};                  // the last message
  TimePoint connection_changed_at{};  // when it began or, without one, ended

  MembershipId entered;  // the newest one it is known to have entered; 0.0: none
  Tick applied_ticks = 0;
  std::optional<std::uint64_t> step;  // none: not told yet
  std::optional<TickTimes> times;     // as it told last

  bool leaving = false;            // said so, or was told to
  bool leave_sent = false;         // on this connection: to leave at a boundary
  bool leave_now_sent = false;     // on this connection: to leave at once
  bool refused = false;            // its last hello
  std::optional<LeftReason> left;  // it said so
  bool ended = false;              // its process or pod is gone
  bool listed = false;             // by a plan, at any time

  int missed_proposals = 0;   // in a row: not prepared in time
  int evictions = 0;          // none: the last pause for one ended an hour ago
  TimePoint backoff_until{};  // no joiner until then

  bool connected() const { return connection != 0; }
  bool gone() const { return left.has_value() || ended; }
};

// The learners of a job, and which of them the operator wants. Records change by its verbs only;
// a reference to one is valid until Forget.
class Roster {
 public:
  using Learners = std::map<LearnerId, LearnerRecord>;

  // Applies a plan: learners whose pods ended are gone.
  void SetPlan(const Plan& plan);
  const std::optional<Plan>& plan() const { return plan_; }
  bool Wanted(const LearnerRecord& learner) const;  // by the plan; none: nobody is
  // Whether all learners of the plan that may live have said hello.
  bool AllOfPlanConnected() const;

  const Learners& learners() const { return learners_; }
  const LearnerRecord* Find(const LearnerId& id) const;
  const LearnerRecord& At(const LearnerId& id) const;  // of one that is known
  const LearnerRecord* OfConnection(ConnectionId connection) const;
  bool Connected(const LearnerId& id) const;
  // Whether all ranks of its learner are connected.
  bool Complete(const LearnerRecord& rank) const;
  // Removes those whose learner does not have all its ranks among `members`.
  void RemoveIncompleteLearners(std::vector<Member>& members) const;

  // Makes it known, if it is not.
  void Add(const LearnerId& id, TimePoint now);
  // A learner's hello was accepted. The connections that it replaces: of this process, and of
  // earlier ones of its pod, which are gone.
  std::vector<ConnectionId> Connect(ConnectionId connection, const Hello& hello, TimePoint now);
  void Disconnect(const LearnerId& id, TimePoint now);
  void Refuse(const LearnerId& id, TimePoint now);

  // ---- What learners say ----
  void RecordHeard(const LearnerId& id, TimePoint now);
  void SetEntered(const LearnerId& id, MembershipId membership);
  void SetAppliedTicks(const LearnerId& id, Tick applied_ticks);
  void SetWork(const LearnerId& id, std::uint64_t step, const std::optional<TickTimes>& times);
  void ClearStep(const LearnerId& id);
  void SetLeft(const LearnerId& id, LeftReason reason);
  void SetPrepared(const LearnerId& id);

  // ---- What the coordinator makes of it ----
  void MarkLeaving(const LearnerId& id);  // with all ranks of its learner
  void MarkLeaveSent(const LearnerId& id, bool at_once);
  // A learner that did not prepare in time does not join for a while, with all its ranks.
  void BackOff(const LearnerId& id, TimePoint now);
  // Likewise one that was evicted, for longer, since each eviction costs a recovery.
  void Quarantine(const LearnerId& id, TimePoint now);
  void ClearBackoffs();
  // Drops the records of those who are gone, or were away for long, unless they are in use.
  void Forget(const std::function<bool(const LearnerId&)>& in_use, TimePoint now);

 private:
  // As the plan lists it; none: not at all.
  std::optional<WantedState> PlannedState(const LearnerId& id) const;
  LearnerRecord& Mutable(const LearnerId& id);
  std::vector<LearnerRecord*> RanksOf(const LearnerId& rank);  // of its learner, known ones
  void HoldBack(const LearnerId& id, Duration pause, TimePoint now);

  std::optional<Plan> plan_;
  std::map<std::pair<std::string, std::string>, WantedState> planned_;  // by name and pod uid
  Learners learners_;
  std::map<ConnectionId, LearnerId> of_connection_;
};

}  // namespace pliant
