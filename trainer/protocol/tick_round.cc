#include "trainer/protocol/tick_round.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "trainer/membership/messages.h"
#include "trainer/protocol/state_check.h"
#include "trainer/protocol/sums_wire.h"
#include "trainer/protocol/wire.h"

namespace pliant {
namespace {

constexpr std::size_t kMaxDeviceName = 128;

}  // namespace

Bytes EncodeTrailer(const Trailer& trailer) {
  WireWriter writer;
  writer.Put(static_cast<std::uint8_t>(trailer.save));
  writer.Put(static_cast<std::uint8_t>(trailer.may_drain));
  writer.Put(static_cast<std::uint8_t>(trailer.state.has_value()));
  if (trailer.state) {
    writer.Put(trailer.state->runtime);
    writer.Put(static_cast<std::uint32_t>(trailer.state->tensors.size()));
    for (const std::uint64_t tensor : trailer.state->tensors) writer.Put(tensor);
    writer.PutText(trailer.state->text);
  }
  writer.Put(static_cast<std::uint8_t>(trailer.checked_shard.has_value()));
  writer.Put(trailer.checked_shard.value_or(0));
  writer.Put(static_cast<std::uint8_t>(trailer.doublings.has_value()));
  writer.Put(static_cast<std::int32_t>(trailer.doublings.value_or(0)));
  writer.PutText(trailer.announced ? EncodeMembership(*trailer.announced) : "");
  writer.Put(static_cast<std::uint32_t>(trailer.shards.size()));
  for (const Trailer::Shard& shard : trailer.shards) {
    writer.Put(static_cast<std::int32_t>(shard.shard));
    PutSums(writer, shard.sums);
    writer.Put(shard.gradient_square);
  }
  writer.Put(static_cast<std::uint8_t>(trailer.in_sync));
  writer.Put(static_cast<std::uint32_t>(trailer.came_in_sync.size()));
  for (const int rank : trailer.came_in_sync) writer.Put(static_cast<std::int32_t>(rank));
  writer.Put(static_cast<std::uint8_t>(trailer.rounds.has_value()));
  const RoundsReport rounds = trailer.rounds.value_or(RoundsReport{});
  writer.Put(static_cast<std::uint8_t>(rounds.ready));
  writer.Put(static_cast<std::int32_t>(rounds.partner.version));
  writer.PutText(rounds.partner.device);
  return writer.Take();
}

Result<Trailer> DecodeTrailer(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Trailer trailer;
  trailer.save = reader.Get<std::uint8_t>() != 0;
  trailer.may_drain = reader.Get<std::uint8_t>() != 0;
  if (reader.Get<std::uint8_t>() != 0) {
    StateDigest& state = trailer.state.emplace();
    state.runtime = reader.Get<std::uint64_t>();
    const auto tensors = reader.Get<std::uint32_t>();
    for (std::uint32_t i = 0; i < tensors && reader.ok(); ++i)
      state.tensors.push_back(reader.Get<std::uint64_t>());
    state.text = reader.GetText();
  }
  const bool has_checked = reader.Get<std::uint8_t>() != 0;
  const auto checked = reader.Get<std::uint64_t>();
  if (has_checked) trailer.checked_shard = checked;
  const bool has_doublings = reader.Get<std::uint8_t>() != 0;
  const auto doublings = reader.Get<std::int32_t>();
  if (has_doublings) trailer.doublings = doublings;
  const std::string_view announced = reader.GetText();
  if (!announced.empty()) {
    ASSIGN_OR_RETURN(trailer.announced, DecodeMembership(announced));
  }
  const auto count = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    Trailer::Shard shard{.shard = reader.Get<std::int32_t>()};
    ASSIGN_OR_RETURN(shard.sums, ReadSums(reader));
    shard.gradient_square = reader.Get<double>();
    trailer.shards.push_back(std::move(shard));
  }
  trailer.in_sync = reader.Get<std::uint8_t>() != 0;
  const auto came = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < came && reader.ok(); ++i) {
    trailer.came_in_sync.push_back(reader.Get<std::int32_t>());
  }
  const bool has_rounds = reader.Get<std::uint8_t>() != 0;
  RoundsReport rounds{.ready = reader.Get<std::uint8_t>() != 0, .partner = {}};
  rounds.partner.version = reader.Get<std::int32_t>();
  rounds.partner.device = reader.GetText();
  if (has_rounds) trailer.rounds = std::move(rounds);
  if (!reader.at_end()) return Invalid("a trailer of the wrong size");
  return trailer;
}

ShardSums SumShards(std::span<const ShardSums> by_shard) {
  return SumTree(by_shard, std::plus<ShardSums>());
}

bool MixesWeights(std::span<const ShardSums> by_shard) {
  const auto weighs = [](const ShardSums& sums) { return sums.samples > 0 && sums.weight; };
  const auto counts = [](const ShardSums& sums) { return sums.samples > 0 && !sums.weight; };
  return std::ranges::any_of(by_shard, weighs) && std::ranges::any_of(by_shard, counts);
}

void TickRound::Begin(const ShardMap& map, int self, bool needs_buffers,
                      const std::vector<bool>& in_sync) {
  const auto ranks = static_cast<std::size_t>(map.world_size());
  CHECK(in_sync.size() == ranks, "each rank is in sync, or catches up");
  self_ = self;
  needs_buffers_ = needs_buffers;
  received_.assign(ranks, false);
  in_sync_ = in_sync;
  missing_ = static_cast<int>(std::ranges::count(in_sync, true));
  sums_.assign(static_cast<std::size_t>(map.logical_shards), {});
  gradient_squares_.assign(sums_.size(), 0);
  buffers_.reset();
  save_ = false;
  may_drain_ = true;
  doublings_.reset();
  announced_.reset();
  states_.assign(ranks, std::nullopt);
  checked_shards_.assign(ranks, std::nullopt);
  came_in_sync_.clear();
  rounds_.assign(ranks, std::nullopt);
  if (map_ == map) return;
  map_ = map;
  shards_of_rank_.clear();
  buffers_rank_ = 0;
  for (int rank = 0; rank < map.world_size(); ++rank) {
    shards_of_rank_.push_back(map.ShardsOf(rank));
    if (std::ranges::find(shards_of_rank_.back(), 0) != shards_of_rank_.back().end()) {
      buffers_rank_ = rank;
    }
  }
}

void TickRound::OnLocal(const Trailer& trailer, Bytes buffers) {
  CHECK(!local_done(), "a tick is computed once");
  Take(self_, trailer);
  if (buffers_rank_ == self_) buffers_ = std::move(buffers);
}

Status TickRound::OnTrailer(int rank, const Trailer& trailer) {
  if (!in_sync_[static_cast<std::size_t>(rank)]) return Invalid("a trailer of a rank catching up");
  if (received_[static_cast<std::size_t>(rank)]) return Invalid("a second trailer");
  const std::vector<int>& expected = shards_of_rank_[static_cast<std::size_t>(rank)];
  if (!std::ranges::equal(trailer.shards, expected, {}, &Trailer::Shard::shard)) {
    return Invalid("a trailer with the shards of another rank");
  }
  if (std::ranges::any_of(trailer.came_in_sync, [&](int came) {
        return came < 0 || came >= std::ssize(in_sync_) || in_sync_[static_cast<std::size_t>(came)];
      })) {
    return Invalid("a trailer that names a member that does not catch up");
  }
  if (std::ranges::any_of(trailer.shards,
                          [](const Trailer::Shard& shard) { return shard.gradient_square < 0; })) {
    return Invalid("a trailer with a negative square");
  }
  if (trailer.state && trailer.state->text.size() > StateDigest::kMaxText)
    return Invalid("a trailer with a long text of its state");
  if (trailer.rounds && trailer.rounds->partner.device.size() > kMaxDeviceName)
    return Invalid("a trailer with a long name of a device");
  if (trailer.save && rank != 0) return Invalid("a checkpoint request from a rank other than 0");
  if (trailer.doublings && (rank != 0 || *trailer.doublings < 0)) {
    return Invalid("a batch that it should not decide");
  }
  Take(rank, trailer);
  return {};
}

void TickRound::Take(int rank, const Trailer& trailer) {
  received_[static_cast<std::size_t>(rank)] = true;
  --missing_;
  for (const Trailer::Shard& shard : trailer.shards) {
    sums_[static_cast<std::size_t>(shard.shard)] = shard.sums;
    gradient_squares_[static_cast<std::size_t>(shard.shard)] = shard.gradient_square;
  }
  save_ |= trailer.save;
  came_in_sync_.insert(trailer.came_in_sync.begin(), trailer.came_in_sync.end());
  states_[static_cast<std::size_t>(rank)] = trailer.state;
  checked_shards_[static_cast<std::size_t>(rank)] = trailer.checked_shard;
  may_drain_ &= trailer.may_drain;
  rounds_[static_cast<std::size_t>(rank)] = trailer.rounds;
  if (trailer.doublings) doublings_ = trailer.doublings;
  if (trailer.announced && (!announced_ || announced_->id < trailer.announced->id)) {
    announced_ = trailer.announced;
  }
}

Status TickRound::OnBuffers(int rank, Bytes buffers) {
  if (rank != buffers_rank_ || !needs_buffers_ || buffers_) {
    return Invalid("buffers that it should not send");
  }
  buffers_ = std::move(buffers);
  return {};
}

bool TickRound::AreUnequal(const SpotCheck& check) const {
  const auto& owner = checked_shards_[static_cast<std::size_t>(check.owner)];
  const auto& checker = checked_shards_[static_cast<std::size_t>(check.checker)];
  return owner && checker && *owner != *checker;
}

StateMismatch TickRound::MismatchOf(int rank, const StateDict& shape) const {
  const std::vector<int> differing = DifferingRanks(states_);
  CHECK(std::ranges::contains(differing, rank), "its state differs");
  int common = 0;  // the lowest rank with the most common state
  while (!states_[static_cast<std::size_t>(common)] || std::ranges::contains(differing, common))
    ++common;
  return pliant::MismatchOf(shape, *states_[static_cast<std::size_t>(rank)],
                            *states_[static_cast<std::size_t>(common)]);
}

TickOutcome TickRound::Outcome() const {
  CHECK(done(), "a tick has an outcome when all trailers are there");
  return {.sums = SumShards(sums_),
          .mixes_weights = MixesWeights(sums_),
          .save = save_,
          .may_drain = may_drain_,
          .doublings = doublings_,
          .announced = announced_,
          .differing = DifferingRanks(states_),
          .unequal = {},
          .came_in_sync = {came_in_sync_.begin(), came_in_sync_.end()},
          .rounds = rounds_};
}

}  // namespace pliant
