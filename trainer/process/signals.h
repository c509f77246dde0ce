#pragma once

#include <functional>
#include <memory>

namespace pliant {

class RealEventLoop;

// From here on SIGTERM and SIGINT do not end the process: they wait until a StopSignals reads them.
// So a signal that arrives while a model is built is not lost (nor, in the first process of a
// container, ignored). Handlers do this, not blocking: a process that is not ours has threads
// already, which would take a signal that only we block. Forked children still end on these
// signals.
void HoldStopSignals();

// Restores the handlers from before HoldStopSignals.
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
