#pragma once

#include <cstdint>
#include <optional>

#include "trainer/data/schedule.h"

namespace pliant {

// Whether the shards' gradients are measured in this tick: in every 16th optimizer step. It depends
// on the step alone, so every learner measures the same steps, whatever happens.
bool IsMeasured(const TickPlan& plan);

// How far the gradients of a step's shards are apart.
struct ShardSpread {
  double sum = 0;  // over the shards with samples, in their order: |gradient|² / samples
  int shards = 0;  // that have samples

  // The next shard. `square`: |gradient of the sum over its samples|².
  void Add(std::uint64_t samples, double square);
  bool operator==(const ShardSpread&) const = default;
};

// The gradient noise scale (McCandlish et al., arXiv:1812.06162): the batch size at which the noise
// of the mean gradient is as large as the gradient. It is trace / square, where `trace` is that of
// the covariance of one sample's gradient, and `square` is |gradient over all data|².
//
// A step of B samples with the mean gradient G gives an unbiased estimate of both, whatever the
// sizes of its V ≥ 2 shards are:
//   trace = (spread.sum − B·|G|²) / (V − 1),   square = |G|² − trace / B
// One estimate is far too noisy, and the quotient of two is biased: the window adds up each of them
// over the measured steps, and an older step counts less. It is part of the training's state: a
// function of the committed steps, with the same bits on every learner.
struct NoiseWindow {
  // Weighted sums over the measured steps, the newest of which has the weight 1.
  double trace = 0;
  double square = 0;
  double steps = 0;

  // A measured step. One whose gradients are not finite empties the window: what was before it says
  // nothing about the training after it.
  void Add(const ShardSpread& spread, std::uint64_t samples, double mean_square);
  // None: too few steps were measured, or the noise hides the gradient, so that the scale may be
  // arbitrarily large.
  std::optional<double> scale() const;
  // Enough steps were measured for an estimate.
  bool filled() const;
  // A window can have these sums. (A peer, or a file, may contain others.)
  bool valid() const;
  bool operator==(const NoiseWindow&) const = default;
};

}  // namespace pliant
