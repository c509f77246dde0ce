#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/event_loop.h"
#include "trainer/collective/buckets.h"

namespace pliant {

// The sizes of buckets that are tried, the one to begin with first.
std::vector<BucketSizes> DefaultBucketSizes();

// Those that cut so many elements differently. Equal on all learners of a job, as the sizes are: so
// a number names one of them.
std::vector<BucketSizes> DistinctBucketSizes(std::size_t elements, std::vector<BucketSizes> sizes);

// Chooses, among so many sizes of buckets, those with which a tick takes least time. Each is tried
// for one tick after the other, in turn, so that whatever else slows the machine down meanwhile
// slows all of them. The first is left only for one that is clearly better.
class BucketTuner {
 public:
  explicit BucketTuner(std::size_t choices);

  // What to use in the next tick that nothing was said of yet.
  std::size_t Next();
  // A tick took so long; with `whole`, it was one like most, so that it counts. What was chosen, if
  // this one ends the trial.
  std::optional<std::size_t> OnTick(std::size_t choice, Duration took, bool whole);
  bool done() const { return chosen_.has_value(); }

 private:
  std::size_t Choose() const;

  std::size_t next_ = 0;
  std::vector<std::size_t> seen_;             // ticks with each choice
  std::vector<std::vector<Duration>> times_;  // of each choice, those that count
  std::optional<std::size_t> chosen_;
};

}  // namespace pliant
