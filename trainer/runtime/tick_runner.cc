#include "trainer/runtime/tick_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/protocol/state_check.h"

namespace pliant {

void TickRunner::Begin(const Start& tick) {
  tick_ = tick;
  stopwatch_ = TickStopwatch(parts_.tasks.Now());
  samples_computed_ = 0;
  partial_.Ask({});
  const Team& team = *tick_.team;
  const bool train = tick_.plan.kind == TickKind::kTrain;
  round_.Begin(team.tick_map(), tick_.self, train && parts_.compute.info().buffer_bytes > 0,
               team.in_sync);
  CHECK((tick_.exchange != nullptr) == train, "a step has an exchange, an evaluation has none");
  check_ = CheckOfTick();
}

std::optional<SpotCheck> TickRunner::CheckOfTick() const {
  if (tick_.plan.kind != TickKind::kTrain || check_state_every_steps_ == 0) return std::nullopt;
  auto check = SpotCheckOf(tick_.plan.step, *tick_.team, parts_.split);
  const int computing = tick_.team->members_in_sync();
  if (check && parts_.split.SamplesOf(tick_.number, computing, check->shard) == 0)
    return std::nullopt;
  return check;
}

void TickRunner::ComputePart() {
  TickWork work = MakeWork();
  if (work.kind == TickKind::kTrain) {
    const ShardMap& map = tick_.team->tick_map();
    const auto& own = map.blocks_of_rank[static_cast<std::size_t>(tick_.self)];
    for (const HeldNode& node : partial_.nodes()) {
      const ShardBlock block = BlockOf(map.logical_shards, node.node);
      if (std::ranges::contains(own, block)) tick_.exchange->AddKept(node);
    }
  }
  computing_ = true;
  parts_.compute.RunTick(
      std::move(work),
      {.on_part = parts_.tasks.Guard<const NodePart&>(
           [this](const NodePart& part) { tick_.exchange->Add(part.node, part.bucket); }),
       .done = parts_.tasks.Guard<Result<TickOutput>>([this](const Result<TickOutput>& output) {
         if (!output) return tick_.owner->OnTickFailed(output.error());
         OnOutput(*output);
       }),
       .exchanged = parts_.tasks.Guard<Status>(
           [this](const Status& exchanged) { OnExchanged(exchanged); })});
}

TickWork TickRunner::MakeWork() {
  const Team& team = *tick_.team;
  const ShardMap& map = team.tick_map();
  const auto self = static_cast<std::size_t>(tick_.self);
  const std::vector<int>& own = round_.shards_of(tick_.self);
  const int computing = team.members_in_sync();
  // A member that computes alone has nobody to send to or to compare its state with.
  const std::uint64_t check_every = computing > 1 ? check_state_every_steps_ : 0;
  const TickPlan& plan = tick_.plan;
  TickWork work{.kind = plan.kind,
                .step = plan.step,
                .logical_shards = map.logical_shards,
                .blocks = team.redo ? team.redo->to_compute[self] : map.blocks_of_rank[self],
                .tasks = {},
                // A difference that a change of the members has left shows after one step together.
                .check_state = plan.kind == TickKind::kTrain && check_every > 0 && plan.step > 0 &&
                               (plan.step % check_every == 0 || team.steps == 1),
                .measure = IsMeasured(plan),
                .own_checked = {},
                .other_checked = {},
                .parts_early = computing > 1};
  if (tick_.exchange != nullptr) tick_.exchange->Prepare(work);
  const auto tasks_of = [&](const std::vector<int>& shards) {
    std::vector<ShardTask> tasks;
    for (const int shard : shards) {
      tasks.push_back(parts_.split.TaskOf(tick_.number, computing, shard));
    }
    return tasks;
  };
  work.tasks = tasks_of(partial_.Ask(own));
  if (check_ && check_->owner == tick_.self) work.own_checked = check_->shard;
  if (check_ && check_->checker == tick_.self)
    work.other_checked = parts_.split.TaskOf(tick_.number, computing, check_->shard);
  if (parts_.ledger != nullptr) ledger_tasks_ = tasks_of(own);
  return work;
}

void TickRunner::OnOutput(const TickOutput& output) {
  stopwatch_.OnComputed(parts_.tasks.Now());
  stopwatch_.AddDataWait(output.data_wait);
  computing_ = false;
  const TickKind kind = tick_.plan.kind;
  partial_.Add(kind, tick_.team->map.logical_shards, output);
  if (parts_.ledger != nullptr && kind == TickKind::kTrain) {
    parts_.ledger->Computed(tick_.membership, tick_.number, ledger_tasks_);
  }
  Trailer trailer = tick_.owner->MakeTrailer();
  trailer.checked_shard = output.checked_shard;
  if (output.state) {
    trailer.state = output.state;
    trailer.state->runtime = RuntimeChecksum(tick_.before->noise, tick_.before->batches);
  }
  for (const int shard : round_.shards_of(tick_.self)) {
    const ShardResult& result = partial_.ResultOf(shard);
    trailer.shards.push_back(
        {.shard = shard, .sums = result.sums, .gradient_square = result.gradient_square});
    samples_computed_ += result.sums.samples;
  }
  const bool has_buffers = kind == TickKind::kTrain && parts_.compute.info().buffer_bytes > 0;
  if (has_buffers && round_.buffers_rank() == tick_.self) {
    parts_.peers.SendToAll(FrameKind::kBuffers, partial_.buffers());
  }
  parts_.peers.SendToAll(FrameKind::kTrailer, EncodeTrailer(trailer));
  round_.OnLocal(trailer, partial_.buffers());
  if (tick_.exchange != nullptr) tick_.exchange->OnComputed(output.mean);
  if (output.mean) partial_.Clear();  // its sums are still on the device
  tick_.owner->OnProgress();
}

void TickRunner::OnExchanged(const Status& exchanged) {
  if (exchanged) {
    tick_.exchange->OnExchanged();
    return tick_.owner->OnProgress();
  }
  tick_.exchange->Drop();
  AwaitRest([this, why = exchanged.error().message] { tick_.owner->OnRoundsFailed(why); });
}

void TickRunner::Abort() {
  const bool whole = tick_.exchange != nullptr && tick_.exchange->Drop();
  if (!(computing_ || whole) || std::exchange(aborting_, true)) return;
  AwaitRest(parts_.aborted);
}

// `then`: the finished part is saved. A repeated call replaces it.
void TickRunner::AwaitRest(std::function<void()> then) {
  computing_ = true;
  parts_.compute.AbortTick(
      parts_.tasks.Guard<TickOutput>([this, then = std::move(then)](const TickOutput& rest) {
        computing_ = aborting_ = false;
        partial_.Add(tick_.plan.kind, tick_.team->map.logical_shards, rest);
        then();
      }));
}

Status TickRunner::OnFrame(int rank, const Frame& frame) {
  switch (frame.header.kind) {
    case FrameKind::kTrailer: {
      ASSIGN_OR_RETURN(const Trailer trailer, DecodeTrailer(frame.payload.view));
      if (trailer.state && trailer.state->tensors.size() != parts_.compute.state_shape().size())
        return Invalid("a trailer with the digest of another program's state");
      return round_.OnTrailer(rank, trailer);
    }
    case FrameKind::kBuffers:
      return round_.OnBuffers(rank, frame.payload);
    default:
      if (tick_.exchange == nullptr) return Invalid("a gradient in an evaluation");
      return tick_.exchange->OnFrame(rank, frame);
  }
}

MutableBytes TickRunner::ReceiveBufferFor(int rank, const FrameHeader& header, std::size_t bytes) {
  if (tick_.exchange == nullptr) return {};
  return tick_.exchange->ReceiveBufferFor(rank, header, bytes);
}

bool TickRunner::complete() const {
  return !committing_ && round_.done() && (tick_.exchange == nullptr || tick_.exchange->over());
}

TickOutcome TickRunner::Outcome() const {
  TickOutcome outcome = round_.Outcome();
  if (check_ && round_.AreUnequal(*check_)) outcome.unequal = check_;
  if (!IsMeasured(tick_.plan)) return outcome;
  const int computing = tick_.team->members_in_sync();
  int shard = 0;
  for (const double square : round_.gradient_squares()) {
    outcome.spread.Add(parts_.split.SamplesOf(tick_.number, computing, shard++), square);
  }
  return outcome;
}

void TickRunner::Commit(const TickOutcome& outcome, const std::optional<EvaluationTask>& evaluation,
                        std::function<void(Result<CommitOutput>)> done) {
  committing_ = true;
  const auto committed = parts_.tasks.Guard<Result<CommitOutput>>(
      [this, done = std::move(done)](Result<CommitOutput> output) {
        committing_ = false;
        done(std::move(output));
      });
  if (evaluation) {
    return parts_.compute.Evaluated(*evaluation, [committed](const Status& status) {
      committed(status.transform([] { return CommitOutput{}; }));
    });
  }
  CommitWork work = CommitOf(tick_.plan, outcome.sums);
  work.mean = tick_.exchange->mean();
  work.buffers = round_.buffers();
  work.first = tick_.self == 0;
  tick_.exchange->Drop();  // the commit has it
  parts_.compute.Commit(std::move(work), committed);
}

void TickRunner::CountInto(LearnerStats& stats) const {
  stopwatch_.CountInto(stats, parts_.tasks.Now());
  ++stats.ticks;
  stats.shards += round_.shards_of(tick_.self).size();
  stats.shards_kept += partial_.shards_kept();
  if (tick_.plan.kind != TickKind::kTrain) return;
  ++stats.steps;
  if (tick_.exchange->in_rounds()) ++stats.steps_in_rounds;
  stats.samples += static_cast<std::uint64_t>(samples_computed_);
}

}  // namespace pliant
