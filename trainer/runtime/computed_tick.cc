#include "trainer/runtime/computed_tick.h"

#include <utility>

#include "trainer/collective/gradient_rounds.h"

namespace pliant {

void ComputedTick::Begin(GradientRounds* rounds) {
  exchanging_ = rounds != nullptr;
  if (!exchanging_) return;
  rounds->WhenOver([this](Status exchanged) {
    post_([this, exchanged = std::move(exchanged)] { OnExchanged(exchanged); });
  });
}

void ComputedTick::Keep(const TickOutput& output, DoneStatus exchanged) {
  whole_ = output;
  if (exchanging_) exchanged_ = std::move(exchanged);
}

void ComputedTick::OnExchanged(const Status& exchanged) {
  exchanging_ = false;
  if (saving_) return saving_->output && saving_->output->mean ? CopyNodes() : EndSaving();
  if (exchanged_ != nullptr) std::exchange(exchanged_, nullptr)(exchanged);
}

void ComputedTick::Save(Result<TickOutput> output, DoneTick done) {
  const bool whole = output && output->mean;
  if (!exchanging_ && !whole) return done(std::move(output));
  saving_ = Saving{.output = std::move(output), .done = std::move(done)};
  if (!exchanging_) CopyNodes();
}

void ComputedTick::SaveKept(DoneTick done) {
  exchanged_ = nullptr;
  if (exchanging_) place_.communicators()->Abort([] {});
  Save(*std::exchange(whole_, std::nullopt), std::move(done));
}

void ComputedTick::CopyNodes() {
  TickOutput& output = *saving_->output;
  output.mean = {};
  place_.CopyNodes(output.nodes);
  place_.Then([this](const Status& copied) {
    post_([this, copied] {
      if (!copied) saving_->output = std::unexpected(copied.error());
      EndSaving();
    });
  });
}

// The callback may destroy this object.
void ComputedTick::EndSaving() {
  const Saving saved = *std::exchange(saving_, std::nullopt);
  const std::function<void()> then = saved_;
  saved.done(saved.output);
  then();
}

}  // namespace pliant
