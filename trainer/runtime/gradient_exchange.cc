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

void DeviceExchange::Add(const HeldNode&, std::uint32_t) {
  CHECK(false, "a device hands out no parts of a step that it keeps");
}

void DeviceExchange::OnComputed(const FloatBuffer& mean) { mean_ = mean; }

Status DeviceExchange::OnFrame(int, const Frame&) {
  return Invalid("a gradient that should travel in rounds");
}

bool DeviceExchange::Drop() { return static_cast<bool>(std::exchange(mean_, {})); }

}  // namespace pliant
