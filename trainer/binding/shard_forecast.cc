#include "trainer/binding/shard_forecast.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace pliant {

ShardForecast::ShardForecast(const Schedule& schedule, int parts)
    : alone_(parts > 0), schedule_(schedule) {
  ComputesAll(parts);
}

void ShardForecast::ComputesAll(int parts) {
  per_tick_.clear();
  for (int part = 0; part < parts; ++part) {
    per_tick_.push_back({.shard = part, .part = part, .parts = parts});
  }
}

Tick ShardForecast::TickOf(const ShardTask& task) const {
  if (task.kind == TickKind::kTrain) return schedule_.TickOfStep(task.step);
  const Tick first = schedule_.TickAfter(task.step);
  return first + task.samples.front() /
                     (schedule_.spec().global_batch_size << schedule_.DoublingsAt(first));
}

void ShardForecast::OnTask(const ShardTask& task) {
  if (task.batches && schedule_.segments() != *task.batches) {
    if (auto with = schedule_.With(*task.batches)) schedule_ = *std::move(with);
    // Without the others, all shards of the larger batch are this learner's.
    if (alone_) ComputesAll(task.parts);
  }
  const Tick tick = TickOf(task);
  if (tick_ != tick) {
    // A tick with fewer samples than shards has empty shards, so its list is not complete.
    const auto parts = static_cast<std::uint64_t>(of_tick_.empty() ? 1 : of_tick_.front().parts);
    if (tick_ && *tick_ + 1 == tick && schedule_.At(*tick_).samples >= parts) {
      std::swap(per_tick_, of_tick_);
    }
    of_tick_.clear();
    tick_ = tick;
  }
  of_tick_.push_back({.shard = task.shard, .part = task.part, .parts = task.parts});
}

std::optional<ShardTask> ShardForecast::After(std::uint64_t ahead) const {
  if (!tick_) return std::nullopt;
  const auto last = std::ranges::find(per_tick_, of_tick_.back());
  if (last == per_tick_.end()) return std::nullopt;
  const auto from = static_cast<std::uint64_t>(std::distance(per_tick_.begin(), last));
  // Empty shards are never given out, so count only those with samples.
  std::uint64_t left = ahead;
  Tick tick = *tick_;
  std::uint64_t place = from + 1;
  // The batch of the next epoch may be another one.
  const Tick end = schedule_.spec().max_doublings == 0
                       ? schedule_.total_ticks()
                       : schedule_.TicksBefore(schedule_.At(tick).epoch + 1);
  for (; tick < end; ++tick, place = 0) {
    for (; place < per_tick_.size(); ++place) {
      const Part& part = per_tick_[place];
      ShardTask task = schedule_.PartOf(tick, part.part, part.parts);
      if (task.samples.empty()) continue;
      task.shard = part.shard;
      if (left-- == 0) return task;
    }
  }
  return std::nullopt;
}

}  // namespace pliant
