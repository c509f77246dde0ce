#include "trainer/runtime/catch_up.h"

#include <utility>

#include "base/check.h"

namespace pliant {

CatchUp::CatchUp(Parts parts, Position from, const std::vector<int>& sources, Tick max_backlog)
    : parts_(parts),
      from_(std::move(from)),
      max_backlog_(max_backlog),
      state_(parts.compute.state_shape(), sources) {}

CatchUp::~CatchUp() {
  CHECK(!busy_ || parts_.tasks.ended(), "it is destroyed only after the program's call has ended");
}

void CatchUp::LoadIfWhole() {
  if (!state_.done()) return;
  busy_ = true;
  parts_.compute.LoadState(state_.Take(), parts_.tasks.Guard<Status>([this](const Status& loaded) {
    if (!loaded) return parts_.owner.OnCatchUpFailed(loaded.error());
    loaded_ = true;
    parts_.owner.OnStateLoaded(from_);
    busy_ = false;
    parts_.owner.OnCatchUpStep();
  }));
}

void CatchUp::Advance() {
  while (loaded_ && !busy_ && !ended_ && !backlog_.empty()) {
    const MissedTick tick = std::move(backlog_.front());
    backlog_.pop_front();
    const bool last = last_ && backlog_.empty();
    if (tick.plan.kind == TickKind::kEvaluate && !tick.evaluation) {
      parts_.owner.OnMissedTickApplied(tick, {}, last);
      continue;
    }
    busy_ = true;
    const auto done = parts_.tasks.Guard<Result<CommitOutput>>(
        [this, tick, last](const Result<CommitOutput>& applied) {
          if (!applied) return parts_.owner.OnCatchUpFailed(applied.error());
          parts_.owner.OnMissedTickApplied(tick, *applied, last);
          busy_ = false;
          parts_.owner.OnCatchUpStep();
        });
    if (tick.evaluation) {
      parts_.compute.Evaluated(*tick.evaluation, [done](const Status& status) {
        done(status.transform([] { return CommitOutput{}; }));
      });
    } else {
      CommitWork work = CommitOf(tick.plan, tick.sums);
      work.mean = {.values = tick.gradient};
      work.buffers = tick.buffers;
      parts_.compute.Commit(std::move(work), done);
    }
  }
}

std::optional<CatchUp::Report> CatchUp::NextReport(Tick applied) {
  if (coming_in_sync() || backlog_.size() >= max_backlog_) return std::nullopt;
  const std::size_t to_apply = backlog_.size() + (busy_ ? 1 : 0);
  const Report now{.applied = applied,
                   .in_sync = last_reported_.in_sync || (loaded_ && to_apply <= 1)};
  if (now == last_reported_) return std::nullopt;
  last_reported_ = now;
  return now;
}

void CatchUp::End() {
  ended_ = true;
  backlog_.clear();
}

}  // namespace pliant
