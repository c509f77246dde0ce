#include "trainer/cuda/nccl_sum.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"

namespace pliant {

NcclSum::NcclSum(GradientRounds::Sum sum, Parts parts)
    : sum_(std::move(sum)), parts_(parts), ready_(sum_.buckets.count()) {}

// ---- The program's thread ----

void NcclSum::Add(std::span<const HeldNode> nodes, std::uint32_t bucket) {
  const CurrentCudaContext current(*parts_.memory.driver(), parts_.memory.context());
  const std::lock_guard lock(mutex_);
  if (over_) return;  // it has failed: an event would stay until the next sum
  CHECK(ready_[bucket] == nullptr, "a bucket is added once");
  const auto record = [&]() -> Result<CudaEvent> {
    ASSIGN_OR_RETURN(const CudaStream program, parts_.memory.program_stream());
    return parts_.events.Record(program);
  };
  if (nodes_.empty()) nodes_.assign(nodes.begin(), nodes.end());
  const Result<CudaEvent> recorded = record();
  if (recorded) {
    ready_[bucket] = *recorded;
  } else if (queued_) {
    queued_ = std::unexpected(recorded.error());
  }
  changed_.notify_all();
}

// ---- Any thread ----

void NcclSum::WhenOver(std::function<void(Status)> done) {
  Status result;
  {
    const std::lock_guard lock(mutex_);
    if (!over_) {
      when_over_ = std::move(done);
      return;
    }
    result = result_;
  }
  done(std::move(result));
}

bool NcclSum::over() {
  const std::lock_guard lock(mutex_);
  return over_;
}

void NcclSum::Wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

// ---- NCCL's thread ----

Status NcclSum::Run(Duration max_shard) {
  max_shard_ = max_shard;
  if (!parts_.communicator.exists())
    return Fail(ErrorCode::kUnavailable, "NCCL: there is no communicator");
  return sum_.all_reduce ? ByAllReduce() : InRounds();
}

void NcclSum::End(const Status& status) {
  std::function<void(Status)> when_over;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    result_ = status;
    nodes_.clear();
    sum_.mean = {};
    when_over = std::exchange(when_over_, nullptr);
    for (CudaEvent& event : ready_)
      if (event != nullptr) parts_.events.Return(std::exchange(event, nullptr));
  }
  if (when_over) when_over(status);
}

NcclSum::Deadline NcclSum::EndOfRounds() const {
  if (max_shard_ == Duration::zero()) return std::nullopt;
  return std::chrono::steady_clock::now() + max_shard_ * (sum_.plan->most_shards() + 1);
}

Status NcclSum::AwaitBucket(std::uint32_t bucket) {
  constexpr const char* kWhat = "the gradient of a step";
  CudaEvent ready = nullptr;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return ready_[bucket] != nullptr || !queued_ || !parts_.communicator.Interrupted(kWhat);
    });
    RETURN_IF_ERROR(queued_);
    ready = ready_[bucket];
  }
  if (ready == nullptr) return parts_.communicator.Interrupted(kWhat);
  return parts_.communicator.Poll({}, kWhat, [&] { return parts_.events.Reached(ready, kWhat); });
}

Status NcclSum::InRounds() {
  const ReductionPlan& plan = *sum_.plan;
  const BucketLayout& buckets = sum_.buckets;
  static_assert(GradientRounds::kMaxNodes <= cuda::kMaxTreeInputs);
  // All buckets but the first and the last have the size of the second one.
  for (std::uint32_t bucket = 0; bucket < std::min(buckets.count(), 2U); ++bucket)
    held_elements_ = std::max(held_elements_, plan.MaxPiece(buckets.RangeOf(bucket).size));
  RETURN_IF_ERROR(parts_.communicator.Reserve(plan.held().size() * held_elements_ * sizeof(float)));
  Deadline deadline;
  for (std::size_t round = 0; round < plan.rounds(buckets.count()); ++round) {
    if (round < buckets.count()) RETURN_IF_ERROR(AwaitBucket(static_cast<std::uint32_t>(round)));
    if (round + 1 >= buckets.count() && !deadline) deadline = EndOfRounds();
    RETURN_IF_ERROR(Round(round, deadline));
  }
  return parts_.communicator.AwaitStream(deadline, "the rounds of a step");
}

Status NcclSum::Round(std::size_t round, const Deadline& deadline) {
  const ReductionPlan& plan = *sum_.plan;
  const std::uint32_t buckets = sum_.buckets.count();
  using Body = std::function<Status(const ReductionPlan::Stage&, std::uint32_t bucket)>;
  const auto for_stages = [&](const Body& body) -> Status {
    for (std::size_t stage = 0; stage < plan.stages().size(); ++stage)
      if (stage <= round && round - stage < buckets)
        RETURN_IF_ERROR(body(plan.stages()[stage], static_cast<std::uint32_t>(round - stage)));
    return {};
  };
  const auto transfer = [&](const ReductionPlan::Stage& stage, std::uint32_t bucket) -> Status {
    for (const auto& [rank, part] : stage.sends)
      if (const auto place = PlaceOf(bucket, part); !place.empty())
        RETURN_IF_ERROR(parts_.communicator.Send(place, rank));
    for (const auto& [rank, part] : stage.receives)
      if (const auto place = PlaceOf(bucket, part); !place.empty())
        RETURN_IF_ERROR(parts_.communicator.Receive(place, rank));
    return {};
  };
  bool transfers = false;
  const auto look = [&](const ReductionPlan::Stage& stage, std::uint32_t) -> Status {
    transfers = transfers || !stage.sends.empty() || !stage.receives.empty();
    return {};
  };
  RETURN_IF_ERROR(for_stages(look));
  // NCCL leaks memory for an empty group.
  if (transfers)
    RETURN_IF_ERROR(parts_.communicator.Group(deadline, [&] { return for_stages(transfer); }));
  return for_stages([&](const ReductionPlan::Stage& stage, std::uint32_t bucket) -> Status {
    for (const ReductionPlan::Addition& addition : stage.additions)
      RETURN_IF_ERROR(Carry(bucket, addition));
    return {};
  });
}

Status NcclSum::Carry(std::uint32_t bucket, const ReductionPlan::Addition& addition) {
  const std::span<float> out = PlaceOf(bucket, addition.sum);
  if (out.empty()) return {};
  const bool is_mean = addition.sum.node == ReductionPlan::kMean;
  cuda::TreeSumArguments sum{
      .divisor = is_mean ? sum_.divisor : 1, .out = out.data(), .elements = out.size()};
  for (std::size_t i = 0; i < addition.nodes.size(); ++i)
    sum.inputs[i] =
        PlaceOf(bucket, {.node = addition.nodes[i], .piece = addition.sum.piece}).data();
  return parts_.kernels.TreeSum(sum, addition.levels, parts_.communicator.stream());
}

std::span<float> NcclSum::PlaceOf(std::uint32_t bucket, const ReductionPlan::Part& part) const {
  const ReductionPlan& plan = *sum_.plan;
  const ElementRange range = plan.RangeOf(sum_.buckets.RangeOf(bucket), part.piece);
  if (part.node == ReductionPlan::kMean) return sum_.mean.view().subspan(range.begin, range.size);
  if (const auto held = plan.HeldIndex(part))
    return {reinterpret_cast<float*>(parts_.communicator.scratch()) + *held * held_elements_,
            range.size};
  const auto own = std::ranges::find(nodes_, part.node, &HeldNode::node);
  CHECK(own != nodes_.end(), "a node of this rank, or one that it receives");
  return own->sum.view().subspan(range.begin, range.size);
}

Status NcclSum::ByAllReduce() {
  const CudaStream stream = parts_.communicator.stream();
  Deadline deadline;
  const std::uint32_t buckets = sum_.buckets.count();
  for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
    RETURN_IF_ERROR(AwaitBucket(bucket));
    if (bucket + 1 == buckets) deadline = EndOfRounds();
    const ElementRange range = sum_.buckets.RangeOf(bucket);
    const std::span<float> out = sum_.mean.view().subspan(range.begin, range.size);
    cuda::TreeSumArguments sum{.out = out.data(), .elements = out.size()};
    CHECK(nodes_.size() <= cuda::kMaxTreeInputs, "a learner's blocks are fewer");
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      sum.inputs[i] = nodes_[i].sum.view().data() + range.begin;
    if (nodes_.empty()) {
      const CudaDriver& driver = *parts_.memory.driver();
      RETURN_IF_ERROR(
          driver.Check(driver.fill(CudaAddress(out.data()), 0, out.size_bytes(), stream), "zeros"));
    } else {
      RETURN_IF_ERROR(parts_.kernels.TreeSum(sum, ChainOf(nodes_.size()), stream));
    }
    RETURN_IF_ERROR(
        parts_.communicator.Group(deadline, [&] { return parts_.communicator.Add(out); }));
    sum = {.divisor = sum_.divisor, .out = out.data(), .elements = out.size()};
    sum.inputs[0] = out.data();
    RETURN_IF_ERROR(parts_.kernels.TreeSum(sum, ChainOf(1), stream));
  }
  return parts_.communicator.AwaitStream(deadline, "the sum of a step");
}

}  // namespace pliant
