#pragma once

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

  ConnectionId connection = 0;  // 0: none
  TimePoint heard{};            // the last message
  TimePoint since{};            // of the connection, or of its end

  MembershipId entered;  // the newest one it is known to have entered; 0.0: none
  Tick applied_ticks = 0;
  std::optional<std::uint64_t> step;  // none: not told yet
  std::optional<TickTimes> times;     // as it told last

  bool leaving = false;  // said so, or was told to
  bool told_to_leave = false;
  bool told_to_go = false;  // to leave at once
  bool refused = false;
  std::optional<LeftReason> left;  // it said so
  bool ended = false;              // its process or pod is gone
  bool listed = false;             // by a plan, at any time

  int slow_count = 0;      // proposals in a row that it did not prepare in time
  int taken_out = 0;       // times that others did without it though it was there
  TimePoint slow_until{};  // no joiner until then

  bool connected() const { return connection != 0; }
  bool gone() const { return left.has_value() || ended; }
};

// The learners of a job, and which of them the operator wants.
class Roster {
 public:
  // Applies a plan: learners whose pods ended are gone.
  void SetPlan(const Plan& plan);
  const std::optional<Plan>& plan() const { return plan_; }
  bool Wanted(const LearnerRecord& learner) const;  // by the plan; none: nobody is

  // A learner that is known, or becomes so.
  LearnerRecord& At(const LearnerId& id, TimePoint now);
  LearnerRecord* Find(const LearnerId& id);
  const LearnerRecord* Find(const LearnerId& id) const;
  LearnerRecord* OfConnection(ConnectionId connection);

  void Connect(LearnerRecord& learner, ConnectionId connection, TimePoint now);
  void Disconnect(LearnerRecord& learner, TimePoint now);

  // Whether all ranks of its learner are connected.
  bool Complete(const LearnerRecord& rank) const;
  // Those that are known, of its learner.
  std::vector<LearnerRecord*> RanksOf(const LearnerId& rank);

  // Whether all learners of the plan that may live have said hello.
  bool AllOfPlanConnected() const;

  std::map<LearnerId, LearnerRecord>& learners() { return learners_; }
  const std::map<LearnerId, LearnerRecord>& learners() const { return learners_; }

 private:
  // As the plan lists it; none: not at all.
  std::optional<WantedState> PlannedState(const LearnerId& id) const;

  std::optional<Plan> plan_;
  std::map<std::pair<std::string, std::string>, WantedState> planned_;  // by name and pod uid
  std::map<LearnerId, LearnerRecord> learners_;
  std::map<ConnectionId, LearnerId> of_connection_;
};

}  // namespace pliant
