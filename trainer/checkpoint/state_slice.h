#pragma once

#include <cstddef>

#include "trainer/checkpoint/state_dict.h"

namespace pliant {

// One learner's part of a checkpoint that several write at once: the index-th of `count`.
struct StateSlice {
  int index = 0;
  int count = 1;
  bool operator==(const StateSlice&) const = default;
};

// The number of learners that write a checkpoint: for a small state fewer files are better.
int SlicesFor(std::size_t state_bytes, std::size_t min_slice_bytes, int learners);

// The tensors of one slice, in the order of `state`. The model's tensors and the others are each
// cut into runs of about equal bytes. Each tensor is whole, in one slice; a slice may be empty.
StateDict SliceOf(const StateDict& state, StateSlice slice);

}  // namespace pliant
