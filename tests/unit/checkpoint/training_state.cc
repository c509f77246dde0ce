#include "tests/unit/checkpoint/training_state.h"

#include <algorithm>
#include <span>

namespace pliant {

TrainingState::TrainingState(std::uint64_t step)
    : weight_(6), bias_(3), momentum_(6), batches_{static_cast<std::int64_t>(step)}, mask_(5) {
  auto value = static_cast<float>(step);
  for (auto* values : {&weight_, &bias_, &momentum_})
    for (float& v : *values) v = value += 0.5F;
  for (std::uint8_t& v : mask_) v = static_cast<std::uint8_t>(step * 7 + 1);
}

StateDict TrainingState::View() {
  const auto bytes = [](auto& values) { return std::as_writable_bytes(std::span(values)); };
  return {
      {.name = "model.mask", .dtype = DType::kUInt8, .shape = {5}, .bytes = bytes(mask_)},
      {.name = "model.fc.weight", .shape = {2, 3}, .bytes = bytes(weight_)},
      {.name = "model.fc.bias", .shape = {3}, .bytes = bytes(bias_)},
      {.name = "model.bn.batches", .dtype = DType::kInt64, .shape = {}, .bytes = bytes(batches_)},
      {.name = "optimizer.fc.weight.momentum", .shape = {2, 3}, .bytes = bytes(momentum_)},
  };
}

CheckpointLabel LabelAt(std::uint64_t step, MembershipId membership) {
  return {.position = {.step = step, .tick = step + 10, .epoch = 1, .membership = membership},
          .job = {.seed = 7,
                  .global_batch_size = 256,
                  .logical_shards = 32,
                  .train_samples = 5000,
                  .test_samples = 0},
          .framework = "test"};
}

std::vector<std::pair<std::string, std::vector<std::byte>>> Contents(const StateDict& state) {
  std::vector<std::pair<std::string, std::vector<std::byte>>> contents;
  for (const TensorView& tensor : state)
    contents.emplace_back(tensor.name,
                          std::vector<std::byte>(tensor.bytes.begin(), tensor.bytes.end()));
  std::ranges::sort(contents);
  return contents;
}

}  // namespace pliant
