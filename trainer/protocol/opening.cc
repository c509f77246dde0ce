#include "trainer/protocol/opening.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/protocol/sums_wire.h"
#include "trainer/protocol/wire.h"

namespace pliant {

namespace {

// A link may break harmlessly: a peer notices late that its connection of an earlier membership has
// ended, or the network fails for a moment. But a peer whose connections always break must not keep
// the membership from opening.
constexpr int kMaxLinksLost = 3;

// Two states with the same place are equal.
using StatePlace = std::pair<Tick, MembershipId>;
StatePlace Place(const StateSummary& holding) {
  return {holding.position.applied_ticks, holding.position.lineage};
}

// Members in sync decide the same batches, and number the nodes of the same tree.
bool SameState(const StateSummary& one, const StateSummary& other) {
  return Place(one) == Place(other) && one.position.noise == other.position.noise &&
         one.position.batches == other.position.batches;
}

}  // namespace

Bytes EncodeStateSummary(const StateSummary& holding) {
  WireWriter writer;
  writer.Put(static_cast<std::uint8_t>(holding.position.has_state));
  writer.Put(static_cast<std::uint8_t>(holding.current));
  writer.Put(holding.position.applied_ticks);
  writer.Put(holding.position.lineage.term);
  writer.Put(holding.position.lineage.counter);
  PutSums(writer, holding.position.evaluation);
  writer.PutText(holding.position.last_line);
  writer.Put(holding.position.noise.trace);
  writer.Put(holding.position.noise.square);
  writer.Put(holding.position.noise.steps);
  writer.Put(static_cast<std::uint32_t>(holding.position.batches.size()));
  for (const BatchSegment& segment : holding.position.batches) {
    writer.Put(segment.epoch);
    writer.Put(static_cast<std::int32_t>(segment.doublings));
  }
  writer.Put(static_cast<std::uint32_t>(holding.finished.size()));
  for (const NodeIndex node : holding.finished) writer.Put(node);
  return writer.Take();
}

Result<StateSummary> DecodeStateSummary(std::span<const std::byte> bytes, const Schedule& schedule,
                                        bool bitwise) {
  WireReader reader(bytes);
  StateSummary holding;
  holding.position.has_state = reader.Get<std::uint8_t>() != 0;
  holding.current = reader.Get<std::uint8_t>() != 0;
  holding.position.applied_ticks = reader.Get<Tick>();
  holding.position.lineage.term = reader.Get<std::uint64_t>();
  holding.position.lineage.counter = reader.Get<std::uint64_t>();
  ASSIGN_OR_RETURN(holding.position.evaluation, ReadSums(reader));
  holding.position.last_line = reader.GetText();
  holding.position.noise.trace = reader.Get<double>();
  holding.position.noise.square = reader.Get<double>();
  holding.position.noise.steps = reader.Get<double>();
  const auto segments = reader.Get<std::uint32_t>();
  if (segments > kMaxBatchSegments) return Invalid("an opening frame with too many batches");
  for (std::uint32_t i = 0; i < segments && reader.ok(); ++i) {
    BatchSegment segment{.epoch = reader.Get<std::uint64_t>()};
    segment.doublings = reader.Get<std::int32_t>();
    holding.position.batches.push_back(segment);
  }
  const auto count = reader.Get<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    holding.finished.push_back(reader.Get<NodeIndex>());
  }
  ASSIGN_OR_RETURN(const Schedule its_schedule, schedule.With(holding.position.batches));
  if (holding.position.applied_ticks > its_schedule.total_ticks()) {
    return Invalid("an opening frame with a tick beyond the end of the job");
  }
  if (its_schedule.last_change() > holding.position.applied_ticks) {
    return Invalid("an opening frame with a batch of an epoch that it has not reached");
  }
  if (!holding.position.noise.valid()) {
    return Invalid("an opening frame with an invalid window of the noise scale");
  }
  const int shards = bitwise ? its_schedule.ShardsAt(holding.position.applied_ticks) : 0;
  const auto nodes = 2 * static_cast<NodeIndex>(shards);
  if (std::ranges::any_of(holding.finished,
                          [&](NodeIndex node) { return node == 0 || node >= nodes; })) {
    return Invalid("an opening frame with an invalid node");
  }
  if (!reader.at_end()) return Invalid("an opening frame of the wrong size");
  return holding;
}

Opening::Opening(int world_size, int self, StateSummary own)
    : self_(self), peers_(static_cast<std::size_t>(world_size)) {
  SetOwn(own);
}

void Opening::OnOpen(int rank, const StateSummary& holding) {
  peers_[static_cast<std::size_t>(rank)].holding = holding;
}

void Opening::OnOpened(int rank) { peers_[static_cast<std::size_t>(rank)].opened = true; }

bool Opening::OnLinkLost(int rank) {
  return ++peers_[static_cast<std::size_t>(rank)].links_lost <= kMaxLinksLost;
}

void Opening::SetOwn(const StateSummary& own) { OnOpen(self_, own); }

std::optional<int> Opening::Furthest() const {
  struct Candidate {
    int rank = 0;  // the lowest with this state
    int holders = 0;
  };
  std::vector<Candidate> candidates;  // of the furthest place: one, unless a member errs or lies
  const auto held_by = [this](const Candidate& candidate) -> const StateSummary& {
    return *holding(candidate.rank);
  };
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const std::optional<StateSummary>& holding = peers_[rank].holding;
    if (!holding || !holding->position.has_state) continue;
    if (!candidates.empty()) {
      const StatePlace most = Place(held_by(candidates.front()));
      if (Place(*holding) < most) continue;
      if (Place(*holding) > most) candidates.clear();
    }
    const auto same = std::ranges::find_if(candidates, [&](const Candidate& candidate) {
      return SameState(held_by(candidate), *holding);
    });
    if (same != candidates.end()) {
      ++same->holders;
    } else {
      candidates.push_back({.rank = static_cast<int>(rank), .holders = 1});
    }
  }
  const auto most = std::ranges::max_element(candidates, {}, &Candidate::holders);
  return most == candidates.end() ? std::nullopt : std::optional(most->rank);
}

Opening::Next Opening::next() const {
  if (!std::ranges::all_of(peers_, [](const Peer& peer) { return peer.holding.has_value(); })) {
    return Next::kWait;
  }
  const bool settled =
      std::ranges::any_of(peers_, [](const Peer& peer) { return peer.holding->current; });
  if (!settled) return self_ == 0 ? Next::kRestore : Next::kWait;
  // No member has a state: rank 0 is about to report that it has one.
  if (!Furthest()) return Next::kWait;
  if (self_ == 0 && !in_sync().front()) return Next::kFetch;
  if (!reported_ready_) return Next::kSayReady;
  const bool all_opened = std::ranges::all_of(peers_, [&](const Peer& peer) {
    return peer.opened || &peer == &peers_[static_cast<std::size_t>(self_)];
  });
  return all_opened ? Next::kBegin : Next::kWait;
}

std::optional<StateSummary> Opening::furthest() const {
  const std::optional<int> rank = Furthest();
  if (!rank) return std::nullopt;
  return peers_[static_cast<std::size_t>(*rank)].holding;
}

std::vector<std::vector<NodeIndex>> Opening::finished() const {
  std::vector<std::vector<NodeIndex>> finished;
  const std::vector<bool> in_sync = this->in_sync();
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    finished.push_back(in_sync[rank] ? peers_[rank].holding->finished : std::vector<NodeIndex>{});
  }
  return finished;
}

std::vector<bool> Opening::in_sync() const {
  const std::optional<StateSummary> most = furthest();
  CHECK(most.has_value(), "ticks begin with a state");
  std::vector<bool> in_sync;
  for (const Peer& peer : peers_) {
    in_sync.push_back(peer.holding->position.has_state && SameState(*peer.holding, *most));
  }
  return in_sync;
}

int Opening::source() const {
  const std::optional<int> furthest = Furthest();
  CHECK(furthest.has_value(), "a member has a state before it is fetched");
  return *furthest;
}

}  // namespace pliant
