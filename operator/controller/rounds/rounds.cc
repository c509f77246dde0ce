#include "operator/controller/rounds/rounds.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace pliant::controller {
namespace {

constexpr std::chrono::milliseconds kShortestWait{10};

}  // namespace

Rounds::Rounds(EventLoop& loop, RoundsOptions options)
    : loop_(loop), options_(std::move(options)), pacer_(options_.pace) {}

Rounds::~Rounds() {
  loop_.Cancel(round_timer_);
  loop_.Cancel(again_timer_);
}

void Rounds::Request() {
  const TimePoint now = loop_.Now();
  loop_.Cancel(round_timer_);
  round_timer_ = loop_.PostAfter(pacer_.OnChange(now) - now, [this] { Run(); });
}

void Rounds::Run() {
  pacer_.OnRound();
  if (!options_.is_current()) {
    round_timer_ = loop_.PostAfter(options_.pace.max_debounce, [this] { Request(); });
    return;
  }
  const TimePoint began = loop_.Now();
  const api::WallTime now = options_.now();
  const std::optional<api::WallTime> again_at = options_.run(now);
  pacer_.OnRoundDone(began, loop_.Now());
  loop_.Cancel(again_timer_);
  if (again_at) {
    again_timer_ =
        loop_.PostAfter(std::max<Duration>(*again_at - now, kShortestWait), [this] { Request(); });
  }
}

}  // namespace pliant::controller
