#include "trainer/runtime/host_gradients.h"

#include "trainer/collective/float_environment.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/runtime/host_tick.h"

namespace pliant {

std::unique_ptr<TickSide> HostGradients::NewTick(const TickWork& work, TickControl& control,
                                                 TickSide::OnPart on_part) {
  return std::make_unique<HostTick>(accumulator(), buffers_, work, control, std::move(on_part));
}

void HostGradients::Begin(RunningCommit& commit) {
  commit.gradient = commit.work.mean.values;
  if (!commit.work.measure) return;
  const FloatEnvironment environment;  // this is the program's thread
  commit.output.gradient_square = GradientSquare::Of(accumulator().cells(), commit.gradient.view());
}

}  // namespace pliant
