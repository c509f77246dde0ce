#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pliant {

inline constexpr std::size_t kMaxNamedSums = 32;  // of a step or an evaluation
inline constexpr std::size_t kMaxSumName = 63;    // characters

// Letters, digits and "_-./", so that a name fits in JSON, logs and labels of metrics. Not one of
// the sums that have a meaning here: samples, weight, loss, correct, accuracy.
bool IsSumName(std::string_view name);

// Sums over the samples of a shard (not means), so that shards of different sizes add up.
struct ShardSums {
  double samples = 0;
  double loss = 0;
  double correct = 0;
  // The tokens, or whatever else the program weighs by, that loss and correct are sums over.
  // Absent: it weighs by samples.
  std::optional<double> weight = std::nullopt;
  // Further sums of the program. One that a shard lacks counts as zero. None is -0.0, so that the
  // bits of a total do not depend on where a zero is written out.
  std::map<std::string, double> named = {};
  bool operator==(const ShardSums&) const = default;

  // Loss and correct divided by it are means.
  double total_weight() const { return weight.value_or(samples); }
  // Sets the values of the named sums, in the order of their names.
  void SetNamed(std::span<const double> values);
};

ShardSums operator+(const ShardSums& a, const ShardSums& b);

// The factor that turns the mean gradient over `samples` into the mean over the weights of `total`.
// 1: the program weighs by samples. 0: nothing has a weight.
double MeanFactor(double samples, const ShardSums& total);

}  // namespace pliant
