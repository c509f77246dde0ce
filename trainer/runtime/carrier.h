#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/backoff.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/communicators.h"
#include "trainer/collective/peer_transport.h"
#include "trainer/protocol/rounds_report.h"
#include "trainer/protocol/team.h"
#include "trainer/runtime/gradient_exchange.h"
#include "trainer/runtime/learner_stats.h"
#include "trainer/runtime/peers.h"
#include "trainer/runtime/tasks.h"

namespace pliant {

// Decides what carries the gradients of each step: frames, which always work, or rounds over a
// communicator, which the members of a membership make in the background while frames carry, and
// abort when they leave it. The bits do not depend on the carrier.
//
// All members have the same trailers of each tick, and derive the next step's carrier from them.
// Rank 0 offers a communicator when all members are in sync and can use one. A learner whose
// communicator failed does not want another one for a while. Lives as long as the learner.
class Carrier {
 public:
  // How long a communicator may take to be aborted: the process cannot use its device until then.
  static constexpr Duration kMaxAbort = std::chrono::seconds(10);

  struct Parts {  // borrowed
    EventLoop& loop;
    Tasks& tasks;
    Communicators* communicators = nullptr;  // none: frames only
    GradientExchanges& exchanges;
    Peers& peers;
    LearnerStats& stats;
    // The membership cannot continue, though no peer was lost. On the event loop.
    std::function<void(const std::string& why)> on_failed;
    // A communicator cannot be aborted: this process has to end. Called on the event loop.
    std::function<void(std::string why)> on_hang;
  };
  // `all_reduce`: see Communicators::Seat.
  Carrier(bool all_reduce, Parts parts) : all_reduce_(all_reduce), parts_(std::move(parts)) {}

  // The learner begins the ticks of a membership, or leaves it. Leaving twice is harmless.
  void Enter(int rank, int world_size);
  void Leave();
  bool entered() const { return now_.has_value(); }

  // For this learner's trailer.
  std::optional<RoundsReport> Report() const;
  // A tick is complete. `reports`: from all trailers, by rank; `all_in_sync`: nobody catches up.
  void OnTick(std::span<const std::optional<RoundsReport>> reports, bool all_in_sync);
  // A kCommunicator frame. kInvalid: `rank` should not have sent it.
  Status OnOffer(int rank, const Frame& frame);
  // A step's gradients did not travel.
  void OnRoundsFailed(const std::string& why);

  // Decides for the team's next step. All members come to the same answer, because they have the
  // same team and the same trailers. Frames carry the first tick of a membership, for which members
  // may have nodes in host memory, and all ticks in which one of them catches up.
  StepCarrier For(const Team& team) const;
  // Begins the exchange of the team's next step, over that carrier.
  GradientExchange& Begin(const Team& team, const GradientExchanges::Step& step) {
    return parts_.exchanges.Begin(For(team), team, step);
  }

 private:
  enum class State { kNone, kOffering, kJoining, kReady, kFailed };
  struct Now {  // in the membership
    int rank = 0;
    int world_size = 1;
    State state = State::kNone;
    bool rounds_next = false;
  };

  void Offer();
  void Join(const CommunicatorId& id);
  void FailUnlessExplained(std::function<void()> then);
  void Fail();
  void AwaitAbort(std::uint64_t abort, int looks);
  // On the event loop, unless the learner has left the membership meanwhile.
  template <typename T>
  std::function<void(T)> InMembership(std::function<void(T)> callback);

  const bool all_reduce_;
  const Parts parts_;
  std::optional<Now> now_;
  std::uint64_t entered_ = 0;  // memberships so far
  std::uint64_t aborts_ = 0;   // begun so far
  std::uint64_t aborted_ = 0;  // the last one of them that has ended
  Backoff backoff_{{.first = std::chrono::minutes(1), .most = std::chrono::minutes(30)}};
  std::optional<TimePoint> failed_at_;
  Duration pause_{};  // after that failure
};

}  // namespace pliant
