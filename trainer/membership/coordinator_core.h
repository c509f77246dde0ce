#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/membership/messages.h"
#include "trainer/membership/plan.h"
#include "trainer/membership/roster.h"
#include "trainer/membership/types.h"

namespace pliant {

// What the coordinator's process is to do, in this order.

// Write the counter to stable storage; what follows may only happen when it is there.
struct PersistCounter {
  std::uint64_t counter = 0;
  bool operator==(const PersistCounter&) const = default;
};
struct SendMessage {
  ConnectionId connection = 0;
  CoordinatorMessage message;
  bool operator==(const SendMessage&) const = default;
};
// Send what is queued, then close. No Disconnected is reported for it.
struct CloseConnection {
  ConnectionId connection = 0;
  bool operator==(const CloseConnection&) const = default;
};
using CoordinatorEffect = std::variant<PersistCounter, SendMessage, CloseConnection>;
using CoordinatorEffects = std::vector<CoordinatorEffect>;

struct CoordinatorOptions {
  std::uint64_t term = 1;
  std::uint64_t counter = 0;  // persisted by this term's process before it; 0: none
  int learners_most = 0;      // members at once; 0: no limit
  // Unix time less the event loop's time: progress is told in the former.
  double unix_offset_seconds = 0;

  Duration heartbeat = std::chrono::seconds(1);      // asked of learners
  Duration silence_most = std::chrono::seconds(10);  // a connection without a message is closed
  // How long a learner may be without a connection while its membership is broken: when its peers
  // lost it too, and when they did not.
  Duration accused_grace = std::chrono::milliseconds(500);
  Duration reconnect_grace = std::chrono::seconds(3);
  Duration rebuild_wait = std::chrono::seconds(30);       // for hellos, after a restart
  Duration join_settle = std::chrono::milliseconds(500);  // more joiners may become ready
  Duration prepare_timeout = std::chrono::seconds(10);
  Duration prepare_timeout_leave = std::chrono::seconds(3);  // when somebody waits to leave
  Duration accusations_settle = std::chrono::milliseconds(200);
};

// Decides who trains: the only one in a job who issues memberships. A state machine without I/O;
// its owner reports what happens and does what each call returns. Calls come from one thread, with
// the time of its event loop.
class CoordinatorCore {
 public:
  CoordinatorCore(CoordinatorOptions options, TimePoint now);
  ~CoordinatorCore();

  // A plan of the operator. kConflict when a greater one was taken before.
  Result<CoordinatorEffects> SetPlan(const Plan& plan, TimePoint now);
  // The first message of a connection is Hello; anything else before it closes the connection.
  CoordinatorEffects OnMessage(ConnectionId connection, const LearnerMessage& message,
                               TimePoint now);
  CoordinatorEffects OnDisconnected(ConnectionId connection, TimePoint now);
  // Call it every kPollInterval: all decisions that wait for time to pass are taken here.
  CoordinatorEffects OnTimer(TimePoint now);

  static constexpr Duration kPollInterval = std::chrono::milliseconds(100);

  JobProgress progress() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pliant
