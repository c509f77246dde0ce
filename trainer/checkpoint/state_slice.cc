#include "trainer/checkpoint/state_slice.h"

#include <algorithm>

#include "base/check.h"

namespace pliant {

int SlicesFor(std::size_t state_bytes, std::size_t slice_bytes_least, int learners) {
  const std::size_t whole = state_bytes / std::max<std::size_t>(slice_bytes_least, 1);
  return static_cast<int>(std::clamp<std::size_t>(whole, 1, static_cast<std::size_t>(learners)));
}

StateDict SliceOf(const StateDict& state, StateSlice slice) {
  CHECK(slice.index >= 0 && slice.index < slice.count, "one of the slices");
  StateDict own;
  for (const bool model : {true, false}) {
    std::size_t total = 0;
    for (const TensorView& tensor : state) {
      if (tensor.name.starts_with(kModelPrefix) == model) total += tensor.bytes.size();
    }
    // A tensor goes where its middle lies.
    std::size_t begin = 0;
    for (const TensorView& tensor : state) {
      if (tensor.name.starts_with(kModelPrefix) != model) continue;
      const double middle =
          static_cast<double>(begin) + (static_cast<double>(tensor.bytes.size()) / 2);
      begin += tensor.bytes.size();
      const double place = total == 0 ? 0 : middle / static_cast<double>(total) * slice.count;
      if (std::min(static_cast<int>(place), slice.count - 1) == slice.index) own.push_back(tensor);
    }
  }
  return own;
}

}  // namespace pliant
