#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/protocol/program.h"

namespace pliant {

// A model of one weight that learns nothing.
class OneWeight final : public Program {
 public:
  explicit OneWeight(std::uint64_t epochs = 1)
      : info_{.train_samples = 1, .epochs = epochs, .gradient_elements = 1, .name = "one weight"} {}

  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask&, std::span<float> gradient, std::span<std::byte>,
                                 GradientSink*) override {
    for (float& value : gradient) value = 0;
    return ShardSums{.samples = 1};
  }
  Status Commit(const CommitTask&) override { return {}; }
  StateDict State() override {
    return {{.name = "model.w", .bytes = std::as_writable_bytes(std::span(&weight_, 1))}};
  }
  Status LoadedState() override { return {}; }

 private:
  const ProgramInfo info_;
  float weight_ = 0;
};

}  // namespace pliant
