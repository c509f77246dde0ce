#include "trainer/runtime/gradient_exchange.h"

#include <utility>

#include "base/check.h"

namespace pliant {

void DeviceExchange::Begin(DeviceStep step, const BucketSizes& buckets) {
  step_ = std::move(step);
  buckets_ = buckets;
  mean_ = {};
  exchanged_ = step_.rounds == nullptr;
}

void DeviceExchange::Prepare(TickWork& work) const {
  work.buckets = buckets_;
  work.device_step = step_;
}

void DeviceExchange::AddKept(const HeldNode&) {
  CHECK(false, "nodes are kept for a first tick only, which frames carry");
}

void DeviceExchange::Add(const HeldNode&, std::uint32_t) {
  CHECK(false, "a device hands out no parts of a step that it keeps");
}

void DeviceExchange::OnComputed(const FloatBuffer& mean) { mean_ = mean; }

Status DeviceExchange::OnFrame(int, const Frame&) {
  return Invalid("a gradient that should travel in rounds");
}

bool DeviceExchange::Drop() { return static_cast<bool>(std::exchange(mean_, {})); }

GradientExchange& GradientExchanges::Begin(StepCarrier carrier, const Team& team,
                                           const Step& step) {
  auto plan = plans_.For(team.tick_map(), team.learner_of_rank, step.self);
  const auto divisor = static_cast<float>(step.samples);
  if (carrier == StepCarrier::kRounds) {
    CHECK(options_.on_device, "all ranks have devices in rounds");
    device_.Begin(
        {.divisor = divisor, .rounds = std::move(plan), .all_reduce = options_.all_reduce},
        options_.buckets_of_rounds);
    return device_;
  }
  if (carrier == StepCarrier::kNone && options_.on_device) {
    device_.Begin({.divisor = divisor, .rounds = nullptr}, options_.buckets);
    return device_;
  }
  frames_.Begin({.membership = step.membership,
                 .tick = step.tick,
                 .plan = std::move(plan),
                 .divisor = divisor,
                 .buckets = options_.buckets});
  return frames_;
}

}  // namespace pliant
