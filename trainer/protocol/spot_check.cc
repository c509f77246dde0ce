#include "trainer/protocol/spot_check.h"

#include <algorithm>
#include <cstddef>

#include "trainer/checkpoint/checksum.h"
#include "trainer/data/permutation.h"
#include "trainer/protocol/sums_wire.h"
#include "trainer/protocol/wire.h"

namespace pliant {
namespace {

bool IsDue(std::uint64_t step, const Team& team, std::uint64_t seed) {
  constexpr std::uint64_t kEvery = SpotCheck::kEverySteps;
  return team.steps == 1 || HashWords({seed, step / kEvery}) % kEvery == step % kEvery;
}

}  // namespace

std::optional<SpotCheck> SpotCheckOf(std::uint64_t step, const Team& team, const WorkSplit& split) {
  const std::uint64_t seed = split.seed();
  if (!split.bitwise() || team.redo || team.members_in_sync() < 2 || !IsDue(step, team, seed))
    return std::nullopt;
  const std::uint64_t drawn = HashWords({seed, step});
  SpotCheck check{
      .shard = static_cast<int>(drawn % static_cast<std::uint64_t>(team.map.logical_shards))};
  std::vector<int> others;
  for (int rank = 0; rank < team.map.world_size(); ++rank) {
    if (!team.IsInSync(rank)) continue;
    if (std::ranges::contains(team.map.ShardsOf(rank), check.shard)) {
      check.owner = rank;
    } else {
      others.push_back(rank);
    }
  }
  // The last rank is the newest learner.
  check.checker = team.steps == 1 ? others.back() : others[(drawn >> 32) % others.size()];
  return check;
}

std::uint64_t DigestOfShard(std::uint64_t gradient, std::span<const std::byte> buffers,
                            const ShardSums& sums) {
  WireWriter writer;
  PutSums(writer, sums);
  return HashWords({gradient, ChecksumOf(buffers), ChecksumOf(writer.Take().view)});
}

}  // namespace pliant
