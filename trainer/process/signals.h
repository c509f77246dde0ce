#pragma once

#include <functional>
#include <memory>

namespace pliant {

class RealEventLoop;

// From here on SIGTERM and SIGINT end nothing: they wait until a StopSignals reads them, so that
// one that arrives while a model is built is not lost (nor, for the first process of a container,
// ignored). By handlers, not by blocking: a process that is not ours has threads already, which
// would take a signal that only we block. Children that are forked keep their ways of ending.
void HoldStopSignals();

// Puts back what was there before HoldStopSignals.
void ReleaseStopSignals();

// Reads the held signals on an event loop. Used on its thread; `loop` outlives it. One at a time.
class StopSignals {
 public:
  StopSignals(RealEventLoop& loop, std::function<void(int signal)> on_signal);
  ~StopSignals();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pliant
