#include "trainer/checkpoint/state_slice.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace pliant {

int SlicesFor(std::size_t state_bytes, std::size_t min_slice_bytes, int learners) {
  const std::size_t whole = state_bytes / std::max<std::size_t>(min_slice_bytes, 1);
  return static_cast<int>(std::clamp<std::size_t>(whole, 1, static_cast<std::size_t>(learners)));
}

StateDict SliceOf(const StateDict& state, StateSlice slice) {
  CHECK(slice.index >= 0 && slice.index < slice.count, "one of the slices");
  const auto is_model = [](const TensorView& tensor) {
    return tensor.name.starts_with(kModelPrefix) ? std::size_t{1} : std::size_t{0};
  };
  std::array<std::size_t, 2> total{};
  for (const TensorView& tensor : state) total[is_model(tensor)] += tensor.bytes.size();
  // A tensor goes to the slice in which its middle lies. The order stays, also with one slice.
  std::array<std::size_t, 2> begin{};
  StateDict own;
  for (const TensorView& tensor : state) {
    const std::size_t model = is_model(tensor);
    const double middle =
        static_cast<double>(begin[model]) + (static_cast<double>(tensor.bytes.size()) / 2);
    begin[model] += tensor.bytes.size();
    const double place =
        total[model] == 0 ? 0 : middle / static_cast<double>(total[model]) * slice.count;
    if (std::min(static_cast<int>(place), slice.count - 1) == slice.index) own.push_back(tensor);
  }
  return own;
}

}  // namespace pliant
