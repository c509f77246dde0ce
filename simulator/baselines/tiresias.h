#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "simulator/rounds/round_policy.h"

namespace pliant::simulator {

// Two queues by attained service: a job leaves the first permanently for the end of the second when
// its seconds with GPUs times its requested GPUs reach the threshold. Each round the queues are
// scanned in order; a job that fits in what is left runs with its requested GPUs, the others have
// none. (Gu et al., Tiresias, NSDI 2019, with two queues and without promotion.)
class Tiresias : public RoundPolicy {
 public:
  explicit Tiresias(std::int64_t threshold_gpu_seconds = 57'600)
      : threshold_gpu_seconds_(threshold_gpu_seconds) {}
  std::vector<Allocation> Allocate(const RoundView& view) override;

 private:
  void UpdateQueues(const RoundView& view);

  const std::int64_t threshold_gpu_seconds_;
  std::set<std::size_t> known_;  // jobs that were in a queue
  std::vector<std::size_t> first_, second_;
};

}  // namespace pliant::simulator
