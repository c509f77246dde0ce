#pragma once

#include "trainer/data/schedule.h"

namespace pliant {

// Batches of 64, 64 and 22 samples; an evaluation of 10.
inline Schedule UnevenSchedule() {
  return *Schedule::Make({.train_samples = 150,
                          .test_samples = 10,
                          .epochs = 2,
                          .global_batch_size = 64,
                          .logical_shards = 16,
                          .seed = 5});
}

}  // namespace pliant
