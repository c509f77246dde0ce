#include "trainer/data/shard_sums.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace pliant {

bool IsSumName(std::string_view name) {
  constexpr std::array<std::string_view, 5> kTaken = {"samples", "weight", "loss", "correct",
                                                      "accuracy"};
  constexpr std::string_view kSigns = "_-./";
  const auto fits = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.contains(c);
  };
  return !name.empty() && name.size() <= kMaxSumName && std::ranges::all_of(name, fits) &&
         !std::ranges::contains(kTaken, name);
}

void ShardSums::SetNamed(std::span<const double> values) {
  CHECK(values.size() == named.size(), "each named sum has a value");
  auto value = values.begin();
  for (auto& [name, sum] : named) sum = *value++ + 0.0;  // no -0.0
}

ShardSums operator+(const ShardSums& a, const ShardSums& b) {
  ShardSums sum{
      .samples = a.samples + b.samples, .loss = a.loss + b.loss, .correct = a.correct + b.correct};
  if (a.weight || b.weight) sum.weight = a.total_weight() + b.total_weight();
  if (a.named.empty() && b.named.empty()) return sum;
  sum.named = a.named;
  for (const auto& [name, value] : b.named) sum.named[name] += value;
  return sum;
}

double MeanFactor(double samples, const ShardSums& total) {
  if (!total.weight) return 1;
  return *total.weight == 0 ? 0 : samples / *total.weight;
}

}  // namespace pliant
