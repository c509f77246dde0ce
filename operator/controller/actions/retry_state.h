#pragma once

#include <cstdint>
#include <string>

#include "base/backoff.h"
#include "operator/controller/actions/action_runner.h"

namespace pliant::controller {

// The recent failures of actions on one job, for its back-off.
struct RetryState {
  explicit RetryState(Duration first_conflict_delay);

  Backoff failures;
  Backoff conflicts;
  api::WallTime not_before;  // back-off ends then; WallTime{}: nothing has failed
  std::string last_error;    // the last one that was logged
};

// The next step after a batch was tried.
struct NextStep {
  enum class Kind : std::uint8_t {
    kLookAgain,  // at once: what was done may require more
    kLookLater,  // after `delay`: the decision used old objects, and the watch will show new ones
    kRest,       // the job backs off for `delay`
    kResolve,    // after `delay` the outcome of the failed action is queried
    kNothing,    // this process is no longer the leader
  };
  Kind kind = Kind::kLookAgain;
  Duration delay{};
  bool log_error = false;  // it differs from the one logged last
  bool operator==(const NextStep&) const = default;
};

// `now`: the batch has just been tried.
NextStep StepAfter(const BatchResult& result, bool unanswered_before, api::WallTime now,
                   RetryState& retry);

}  // namespace pliant::controller
