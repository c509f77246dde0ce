#include "trainer/protocol/hang_detector.h"

#include <utility>

#include "base/format.h"

namespace pliant {

std::string ToString(const ProgramCall& call) {
  const std::string shard = call.shard ? Format("shard {} of ", *call.shard) : "";
  switch (call.kind) {
    case ProgramCall::Kind::kTrain:
      return Format("{}step {}", shard, call.step + 1);
    case ProgramCall::Kind::kEvaluate:
      return Format("{}the evaluation after step {}", shard, call.step);
    case ProgramCall::Kind::kCommit:
      return Format("the update of step {}", call.step + 1);
    case ProgramCall::Kind::kEvaluated:
      return Format("the result of the evaluation after step {}", call.step);
    case ProgramCall::Kind::kLoad:
      return "loading a state";
  }
  std::unreachable();
}

std::optional<std::string> HangDetector::Look(const std::optional<ProgramCall>& call,
                                              TimePoint now) {
  // If the last check is long ago, this process itself stood still, and its program with it: the
  // process was stopped, or the machine slept.
  const bool stood_still = now - looked_ >= max_ / 2;
  looked_ = now;
  if (!call || call != call_ || stood_still) {
    call_ = call;
    since_ = now;
    return std::nullopt;
  }
  if (now - since_ < max_) return std::nullopt;
  return Format(
      "StepTimeout: its program has worked at {} for {:.0f} s: it hangs, or needs a longer "
      "spec.stepTimeoutSeconds",
      ToString(*call), ToSeconds(now - since_));
}

}  // namespace pliant
