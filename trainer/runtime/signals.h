#pragma once

#include <functional>
#include <memory>

namespace pliant {

class RealEventLoop;

// Holds SIGTERM and SIGINT back until a StopSignals reads them, so that one that arrives while a
// model is built is not lost (nor, for the first process of a container, ignored). First in main:
// threads inherit it.
void HoldStopSignals();

// Reads the held signals on an event loop. Used on its thread; `loop` outlives it.
class StopSignals {
 public:
  StopSignals(RealEventLoop& loop, std::function<void(int signal)> on_signal);
  ~StopSignals();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace pliant
