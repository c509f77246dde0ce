#pragma once

#include <functional>
#include <optional>

#include "base/event_loop.h"
#include "operator/api/time.h"
#include "operator/controller/rounds/round_pacer.h"

namespace pliant::controller {

struct RoundsOptions {
  RoundPacer::Options pace;
  std::function<api::WallTime()> now;
  // Whether the stores are up to date. An object that is absent from a store that was not listed
  // yet may well exist; and a store that lost its watch does not show what an earlier leader did.
  std::function<bool()> is_current;
  // Plans all jobs and acts on those that have news. Returns when time alone may change the plan;
  // nullopt: never.
  std::function<std::optional<api::WallTime>(api::WallTime now)> run;
};

// Starts a round, which plans all jobs, shortly after something has changed, or when time may
// change the plan. Control thread.
class Rounds {
 public:
  // `loop` outlives the rounds.
  Rounds(EventLoop& loop, RoundsOptions options);
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // Something has changed. The round runs as a task of its own.
  void Request();

 private:
  void Run();

  EventLoop& loop_;
  const RoundsOptions options_;
  RoundPacer pacer_;
  TimerId round_timer_ = 0;
  TimerId again_timer_ = 0;
};

}  // namespace pliant::controller
