#include "trainer/collective/reduction.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "trainer/collective/cache_line.h"
#include "trainer/collective/float_loops.h"

namespace pliant {
namespace {

// A root that is larger than a core's own cache is no longer in it when the commit reads it.
constexpr std::size_t kMinStreamed = std::size_t{1} << 20;

Bytes BytesOf(const FloatBuffer& values, ElementRange range) {
  return {.owner = std::shared_ptr<const void>(values.owner(), values.view().data()),
          .view = std::as_bytes(values.view().subspan(range.begin, range.size))};
}

static_assert(ReductionPlan::kMean < kRootNode, "means come before nodes");
bool IsMean(const ReductionPlan::Part& part) { return part.node == ReductionPlan::kMean; }

bool IsAligned(const Bytes& bytes) {
  return reinterpret_cast<std::uintptr_t>(bytes.view.data()) % alignof(float) == 0;
}

// Returns these bytes, or a copy that is aligned for floats.
Bytes Aligned(const Bytes& bytes) {
  if (IsAligned(bytes)) return bytes;
  const FloatBuffer copy(bytes.view.size() / sizeof(float));
  std::memcpy(copy.view().data(), bytes.view.data(), bytes.view.size());
  return BytesOf(copy, {.begin = 0, .size = copy.view().size()});
}

}  // namespace

Reduction::Reduction(std::size_t elements, SendFrame send, MemorySource& memory)
    : elements_(elements),
      send_(std::move(send)),
      memory_(memory),
      streams_(elements >= kMinStreamed),
      roots_(elements, 1, memory),
      sums_pool_(0, 0, memory) {}

void Reduction::Begin(const TickInfo& info) {
  membership_ = info.membership;
  tick_ = info.tick;
  divisor_ = info.divisor;
  if (std::exchange(plan_, info.plan) != info.plan) MakeRoutes();
  if (const BucketLayout layout(elements_, info.buckets); layout_ != layout) {
    layout_ = layout;
    buckets_.resize(layout_.count());
    for (std::uint32_t index = 0; index < layout_.count(); ++index)
      buckets_[index].range = layout_.RangeOf(index);
  }
  root_ = {};  // before Take, which may return the same buffer
  root_ = roots_.Take();
  pieces_missing_ = 0;
  for (Bucket& bucket : buckets_) {
    bucket.inputs.assign(inputs_, {});
    bucket.missing.clear();
    for (const Sum& sum : all_sums_) bucket.missing.push_back(sum.addition->nodes.size());
    bucket.arrived.assign(routes_.size(), false);
    // The means are the first ones by part.
    for (std::size_t route = 0; route < routes_.size() && IsMean(routes_[route].part); ++route)
      if (RangeOf(bucket, route).size > 0) ++pieces_missing_;
  }
  PlaceSums();
}

void Reduction::MakeRoutes() {
  routes_.clear();
  all_sums_.clear();
  const int self = plan_->self();
  std::map<ReductionPlan::Part, Route> routes;
  const auto route_of = [&](const ReductionPlan::Part& part) -> Route& {
    return routes.try_emplace(part, Route{.part = part, .from = self, .to = {}}).first->second;
  };
  inputs_ = 0;
  std::size_t most_inputs = 0;
  for (const ReductionPlan::Stage& stage : plan_->stages()) {
    for (const auto& [rank, part] : stage.receives) route_of(part).from = rank;
    for (const auto& [rank, part] : stage.sends) route_of(part).to.push_back(rank);
    for (const ReductionPlan::Addition& addition : stage.additions) {
      const int sum = static_cast<int>(all_sums_.size());
      all_sums_.push_back({.addition = &addition, .first_input = inputs_});
      route_of(addition.sum);
      for (const NodeIndex node : addition.nodes) {
        Route& input = route_of({.node = node, .piece = addition.sum.piece});
        input.sum = sum;
        input.input = inputs_++;
      }
      most_inputs = std::max(most_inputs, addition.nodes.size());
    }
  }
  for (auto& [part, route] : routes) routes_.push_back(std::move(route));
  for (Sum& sum : all_sums_) sum.route = *RouteOf(sum.addition->sum);
  input_values_.resize(most_inputs);
}

// The sums of a node's pieces lie one after another, on cache-line boundaries: a whole gradient for
// each node would be many times what this rank writes of it.
void Reduction::PlaceSums() {
  std::size_t elements = 0;
  for (Bucket& bucket : buckets_) {
    bucket.places.clear();
    for (const Sum& sum : all_sums_) {
      bucket.places.push_back(elements);
      if (!IsMean(sum.addition->sum))
        elements += CacheLines(RangeOf(bucket, sum.route).size) * kFloatsPerCacheLine;
    }
  }
  sums_ = {};  // before Take, which may return the same buffer
  if (elements == 0) return;
  if (sums_pool_.buffer_size() != elements) sums_pool_ = BufferPool(elements, 0, memory_);
  sums_ = sums_pool_.Take();
}

std::optional<std::size_t> Reduction::RouteOf(const ReductionPlan::Part& part) const {
  const auto found = std::ranges::lower_bound(routes_, part, {}, &Route::part);
  if (found == routes_.end() || found->part != part) return std::nullopt;
  return static_cast<std::size_t>(found - routes_.begin());
}

ElementRange Reduction::RangeOf(const Bucket& bucket, std::size_t route) const {
  return plan_->RangeOf(bucket.range, routes_[route].part.piece);
}

void Reduction::AddLocal(const HeldNode& node) {
  for (std::uint32_t bucket = 0; bucket < layout_.count(); ++bucket) AddLocal(node, bucket);
}

void Reduction::AddLocal(const HeldNode& node, std::uint32_t bucket) {
  CHECK(std::ranges::contains(plan_->own(), node.node),
        "a node that the map gives to this learner");
  CHECK(bucket < layout_.count(), "one of the buckets");
  const auto [first, last] = std::ranges::equal_range(
      routes_, node.node, {}, [](const Route& route) { return route.part.node; });
  const auto begin = static_cast<std::size_t>(first - routes_.begin());
  const auto count = static_cast<std::size_t>(last - first);
  // The pieces in turn, beginning after this rank's own one.
  const auto after = static_cast<std::size_t>(std::ranges::count_if(
      first, last, [this](const Route& route) { return route.part.piece <= plan_->self(); }));
  for (std::size_t turn = 0; turn < count; ++turn) {
    const std::size_t route = begin + (after + turn) % count;
    const ElementRange piece = RangeOf(buckets_[bucket], route);
    if (piece.size > 0) OnPart(bucket, route, BytesOf(node.sum, piece));
  }
}

void Reduction::OnPart(std::uint32_t index, std::size_t route_index, Bytes bytes) {
  Bucket& bucket = buckets_[index];
  const Route& route = routes_[route_index];
  CHECK(!bucket.arrived[route_index], "each part is given once");
  bucket.arrived[route_index] = true;
  if (IsMean(route.part)) --pieces_missing_;
  for (const int rank : route.to) Send(rank, index, route.part, bytes);
  if (route.sum < 0) return;
  const auto sum = static_cast<std::size_t>(route.sum);
  bucket.inputs[route.input] = std::move(bytes);
  if (--bucket.missing[sum] == 0) AddUp(index, sum);
}

void Reduction::AddUp(std::uint32_t index, std::size_t sum_index) {
  Bucket& bucket = buckets_[index];
  const Sum& sum = all_sums_[sum_index];
  const bool is_mean = IsMean(sum.addition->sum);
  ElementRange range = RangeOf(bucket, sum.route);
  if (!is_mean) range.begin = bucket.places[sum_index];
  const FloatBuffer& to = is_mean ? root_ : sums_;
  const std::span<Bytes> inputs =
      std::span(bucket.inputs).subspan(sum.first_input, sum.addition->nodes.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    input_values_[i] = {reinterpret_cast<const float*>(inputs[i].view.data()), range.size};
  tree_.Sum(sum.addition->levels, std::span(input_values_).first(inputs.size()),
            is_mean ? divisor_ : 1, to.view().subspan(range.begin, range.size));
  for (Bytes& input : inputs) input = {};
  OnPart(index, sum.route, BytesOf(to, range));
}

void Reduction::Send(int rank, std::uint32_t bucket, const ReductionPlan::Part& part, Bytes bytes) {
  const bool is_mean = IsMean(part);
  send_(rank, {.header = {.kind = is_mean ? FrameKind::kRoot : FrameKind::kNode,
                          .membership = membership_,
                          .tick = tick_,
                          .bucket = bucket,
                          .node = is_mean ? kRootNode : part.node,
                          .piece = static_cast<std::uint32_t>(part.piece)},
               .payload = std::move(bytes)});
}

// The route of a part that `rank` sends; nullopt: it does not.
std::optional<std::size_t> Reduction::RouteFrom(int rank, const FrameHeader& header) const {
  if (header.piece >= static_cast<std::uint32_t>(world_size())) return std::nullopt;
  const bool is_mean = header.kind == FrameKind::kRoot;
  if (is_mean ? header.node != kRootNode : header.node == ReductionPlan::kMean) return std::nullopt;
  const auto route = RouteOf({.node = is_mean ? ReductionPlan::kMean : header.node,
                              .piece = static_cast<int>(header.piece)});
  return route && routes_[*route].from == rank && rank != plan_->self() ? route : std::nullopt;
}

Status Reduction::OnFrame(int rank, const Frame& frame) {
  const FrameHeader& header = frame.header;
  if (world_size() == 0 || header.membership != membership_ || header.tick != tick_)
    return Fail(ErrorCode::kConflict,
                Format("a frame of membership {} tick {} in membership {} tick {}",
                       ToString(header.membership), header.tick, ToString(membership_), tick_));
  if (header.kind != FrameKind::kNode && header.kind != FrameKind::kRoot)
    return Invalid(
        Format("frame kind {} does not belong to a reduction", static_cast<int>(header.kind)));
  if (header.bucket >= buckets_.size())
    return Invalid(Format("rank {} sent bucket {} of {}", rank, header.bucket, buckets_.size()));
  const std::optional<std::size_t> route = RouteFrom(rank, header);
  if (!route)
    return Invalid(Format("rank {} of {} sent node {} of piece {}, which is not its to send", rank,
                          world_size(), header.node, header.piece));
  const Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = RangeOf(bucket, *route);
  if (frame.payload.view.size() != piece.size * sizeof(float) || piece.size == 0)
    return Invalid(Format("rank {} sent {} bytes of node {} for piece {}, want {}", rank,
                          frame.payload.view.size(), header.node, header.piece,
                          piece.size * sizeof(float)));
  if (bucket.arrived[*route])
    return Fail(ErrorCode::kAlreadyExists, Format("rank {} sent node {} of bucket {} twice", rank,
                                                  header.node, header.bucket));
  if (header.kind == FrameKind::kNode) {
    OnPart(header.bucket, *route, Aligned(frame.payload));
  } else {
    KeepMean(frame.payload, piece);
    OnPart(header.bucket, *route, BytesOf(root_, piece));
  }
  return {};
}

void Reduction::KeepMean(const Bytes& payload, ElementRange piece) {
  float* const place = root_.view().data() + piece.begin;
  const auto* const values = reinterpret_cast<const float*>(payload.view.data());
  if (place == values) return;  // it was received in place
  if (streams_ && IsAligned(payload))
    CopyStreamed(place, values, piece.size);
  else
    std::memcpy(place, values, payload.view.size());
}

MutableBytes Reduction::ReceiveBufferFor(int rank, const FrameHeader& header,
                                         std::size_t bytes) const {
  if (header.kind != FrameKind::kRoot || world_size() == 0 || header.membership != membership_ ||
      header.tick != tick_ || header.bucket >= buckets_.size())
    return {};
  const std::optional<std::size_t> route = RouteFrom(rank, header);
  if (!route) return {};
  const Bucket& bucket = buckets_[header.bucket];
  const ElementRange piece = RangeOf(bucket, *route);
  // A piece that has arrived is already being read, and is not written again whatever a peer sends.
  if (bucket.arrived[*route] || bytes != piece.size * sizeof(float)) return {};
  return {.owner = std::shared_ptr<void>(root_.owner(), root_.view().data()),
          .view = std::as_writable_bytes(root_.view().subspan(piece.begin, piece.size))};
}

}  // namespace pliant
