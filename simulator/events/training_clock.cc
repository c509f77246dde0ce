#include "simulator/events/training_clock.h"

#include <algorithm>
#include <cmath>

namespace pliant::simulator {

void TrainingClock::AdvanceTo(std::int64_t now) {
  const std::int64_t from = std::max(advanced_to_, paused_until_);
  if (trains() && now > from) {
    if (!started_) started_ = from;
    const double seconds = static_cast<double>(now - from) / 1000;
    const double begin = state_.progress;
    state_.progress += rate_ * seconds;
    useful_seconds_ += speed_ * seconds;
    trained_seconds_ += seconds;
    if (now - checkpoint_at_ >= checkpoint_every_) {
      // At a multiple of the interval, or when training began if that was later.
      checkpoint_at_ = std::max(now - now % checkpoint_every_, from);
      trained_seconds_ = static_cast<double>(now - checkpoint_at_) / 1000;
      checkpoint_ = state_;
      checkpoint_.progress = begin + rate_ * (seconds - trained_seconds_);
    }
  }
  advanced_to_ = std::max(advanced_to_, now);
}

void TrainingClock::PauseUntil(std::int64_t time) {
  paused_until_ = std::max(paused_until_, time);
  ++version_;
  ++size_version_;
}

void TrainingClock::TrainOn(Placement placement, Placement planned) {
  placement_ = std::move(placement);
  planned_ = planned.empty() ? placement_ : std::move(planned);
  ++size_version_;
  SetRate();
}

void TrainingClock::LoseAll() {
  lost_seconds_ += trained_seconds_;
  trained_seconds_ = 0;
  state_ = checkpoint_;
  phase_has_begun_ = state_.batch > 0;
  TrainOn({}, {});
}

void TrainingClock::EndPhase() {
  state_.progress = work_->PhaseEnd(state_);
  ++state_.phase;
  phase_has_begun_ = false;
  SetRate();
}

void TrainingClock::SetRate() {
  ++version_;
  rate_ = speed_ = 0;
  if (!trains() || is_done()) return;
  if (!phase_has_begun_) {
    const int batch = state_.batch;
    state_ = work_->Begin(state_, planned_, learned_);
    if (state_.batch != batch) ++size_version_;
    phase_has_begun_ = true;
  }
  rate_ = work_->Rate(state_, placement_);
  speed_ = rate_ / work_->RateAlone(state_);
}

std::optional<std::int64_t> TrainingClock::phase_ends_at() const {
  if (!trains() || is_done()) return std::nullopt;
  const double left = std::max(work_->PhaseEnd(state_) - state_.progress, 0.0);
  const double millis = std::ceil(1000 * left / rate_);
  if (!(millis < 1e15)) return std::nullopt;
  return std::max(advanced_to_, paused_until_) + static_cast<std::int64_t>(millis);
}

}  // namespace pliant::simulator
