#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// A small training state of several types, whose bytes are determined by the step.
class TrainingState {
 public:
  explicit TrainingState(std::uint64_t step);
  StateDict View();

 private:
  std::vector<float> weight_;
  std::vector<float> bias_;
  std::vector<float> momentum_;
  std::vector<std::int64_t> batches_;
  std::vector<std::uint8_t> mask_;
};

CheckpointLabel LabelAt(std::uint64_t step, MembershipId membership = {.term = 2, .counter = 5});

// Every tensor by name, with its bytes.
std::vector<std::pair<std::string, std::vector<std::byte>>> Contents(const StateDict& state);

}  // namespace pliant
