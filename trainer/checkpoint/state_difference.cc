#include "trainer/checkpoint/state_difference.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/format.h"

namespace pliant {
namespace {

const TensorView* Find(const StateDict& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &TensorView::name);
  return found == state.end() ? nullptr : &*found;
}

// The difference in one tensor. None: the bits are equal.
std::optional<StateDifference> Compare(const TensorView& expected, const TensorView* found) {
  StateDifference difference{.tensor = expected.name};
  if (found == nullptr || found->dtype != expected.dtype || found->shape != expected.shape) {
    return difference;
  }
  const std::size_t size = SizeOf(expected.dtype);
  for (std::size_t at = 0; at < expected.bytes.size(); at += size) {
    if (std::memcmp(expected.bytes.data() + at, found->bytes.data() + at, size) == 0) continue;
    if (difference.elements++ == 0) difference.element = at / size;
  }
  if (difference.elements == 0) return std::nullopt;
  return difference;
}

}  // namespace

std::string ToString(const StateDifference& difference) {
  const std::string how = difference.elements == 0
                              ? "is missing or has another type or shape"
                              : Format("differs in {} of its elements, the first is number {}",
                                       difference.elements, difference.element);
  return Format("{} {}; tensors that differ: {}", difference.tensor, how, difference.tensors);
}

std::optional<StateDifference> FindDifference(const StateDict& expected, const StateDict& found) {
  std::optional<StateDifference> first;
  std::uint64_t tensors = 0;
  const auto note = [&](std::optional<StateDifference> difference) {
    if (!difference) return;
    ++tensors;
    if (!first) first = std::move(difference);
  };
  for (const TensorView& tensor : expected) note(Compare(tensor, Find(found, tensor.name)));
  for (const TensorView& tensor : found) {
    if (Find(expected, tensor.name) == nullptr) note(StateDifference{.tensor = tensor.name});
  }
  if (first) first->tensors = tensors;
  return first;
}

}  // namespace pliant
