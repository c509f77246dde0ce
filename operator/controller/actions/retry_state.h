#pragma once

#include <cstdint>
#include <string>

#include "base/backoff.h"
#include "operator/controller/actions/action_runner.h"

namespace pliant::controller {

// How the tries to act on one job went of late.
struct RetryState {
  explicit RetryState(Duration first_conflict_delay);

  Backoff failures;
  Backoff conflicts;
  api::WallTime not_before;  // the job is left alone until then; WallTime{}: nothing has failed
  std::string last_error;    // as it was logged
};

// What follows a batch that was tried.
struct NextStep {
  enum class Kind : std::uint8_t {
    kLookAgain,  // at once: what was done may call for more
    kLookLater,  // after `delay`: it was decided on what is no more, and the watch is about to tell
    kRest,       // the job is left alone for `delay`
    kResolve,    // after `delay` the server is asked what has become of the action that failed
    kNothing,    // this process does not lead any more
  };
  Kind kind = Kind::kLookAgain;
  Duration delay{};
  bool log_error = false;  // it is another one than was logged
  bool operator==(const NextStep&) const = default;
};

// `now`: the batch has just been tried.
NextStep StepAfter(const BatchResult& result, bool unanswered_before, api::WallTime now,
                   RetryState& retry);

}  // namespace pliant::controller
