#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "trainer/data/shard_sums.h"

namespace pliant {

// Sums that a program reports of a shard before it answers.
struct ReportedSums {
  std::optional<double> weight;         // as in ShardSums
  std::map<std::string, double> named;  // as in ShardSums
  bool follow = false;  // the values of `named` follow loss and correct in a device's memory

  // The number of sums in a device's memory.
  std::size_t device_sums() const { return 2 + (follow ? named.size() : 0); }

  // The sums of the answer. Nothing is left here.
  ShardSums Take(double samples, double loss = 0, double correct = 0) {
    return {.samples = samples,
            .loss = loss,
            .correct = correct,
            .weight = std::exchange(weight, std::nullopt),
            .named = std::exchange(named, {})};
  }
  // The same with the sums that were read from a device.
  ShardSums Take(double samples, std::span<const double> read) {
    ShardSums sums = Take(samples, read[0], read[1]);
    if (follow) sums.SetNamed(read.subspan(2));
    return sums;
  }
};

}  // namespace pliant
