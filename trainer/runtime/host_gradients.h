#pragma once

#include <utility>

#include "trainer/runtime/gradient_place.h"

namespace pliant {

// Memory kept for what a tick writes apart from gradients: the model's buffers, and results.
inline constexpr std::size_t kTickBytesKept = std::size_t{64} << 20;

// Gradients in host memory: nothing is queued.
class HostGradients final : public GradientPlace {
 public:
  using GradientPlace::GradientPlace;

  bool keeps_means() const override { return false; }
  Communicators* communicators() override { return nullptr; }
  std::unique_ptr<TickSide> NewTick(const TickWork& work, TickControl& control,
                                    TickSide::OnPart on_part) override;
  void CopyNodes(std::vector<HeldNode>& nodes) override { accumulator().CopySums(nodes); }
  void Then(std::function<void(const Status&)> done) override { done({}); }
  void Begin(RunningCommit& commit) override;
  void End(std::shared_ptr<RunningCommit> /*commit*/,
           std::function<void(const Status&)> done) override {
    done({});
  }
  bool Drain() override { return true; }

 private:
  BytePool buffers_{kTickBytesKept};
};

}  // namespace pliant
