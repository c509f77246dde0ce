#include "trainer/runtime/learner_stats.h"

namespace pliant {

std::optional<TickTimes> MeanTimes(const LearnerStats& then, const LearnerStats& now) {
  if (now.ticks == then.ticks) return std::nullopt;
  const auto ticks = static_cast<double>(now.ticks - then.ticks);
  const double computing = ToSeconds(now.computing - then.computing);
  const std::uint64_t shards = now.shards - then.shards;
  return TickTimes{
      .shard_seconds = shards > 0 ? computing / static_cast<double>(shards) : 0,
      .compute_seconds = computing / ticks,
      .data_wait_seconds = ToSeconds(now.data_waiting - then.data_waiting) / ticks,
      .wait_seconds = ToSeconds(now.waiting - then.waiting) / ticks,
      .commit_seconds = ToSeconds(now.committing - then.committing) / ticks,
      .sent_bytes = static_cast<double>(now.bytes_sent - then.bytes_sent) / ticks,
      .received_bytes = static_cast<double>(now.bytes_received - then.bytes_received) / ticks};
}

}  // namespace pliant
