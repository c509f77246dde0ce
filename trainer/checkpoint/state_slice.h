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

// How many learners write a checkpoint: small ones are not worth the files.
int SlicesFor(std::size_t state_bytes, std::size_t min_slice_bytes, int learners);

// The tensors of one slice, the model's and the others each in runs of about equal bytes, in the
// order of `state`. Every tensor is in one slice, whole; a slice may have none.
StateDict SliceOf(const StateDict& state, StateSlice slice);

}  // namespace pliant
