#include "trainer/runtime/running_commit.h"

#include "trainer/collective/float_environment.h"
#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_square.h"

namespace pliant {

CommitTask RunningCommit::Begin(const GradientCells& cells, const DeviceTick::Memory* device) {
  std::span<const float> gradient = work_.mean.values.view();
  if (device != nullptr) {
    gradient_ = work_.mean.values;
    if (!work_.mean.on_device) {
      gradient_ = device->means.Take();
      device->device.ToDevice(std::as_bytes(gradient), std::as_writable_bytes(gradient_.view()));
    }
    gradient = gradient_.view();
    if (work_.measure) {
      lanes_ = device->pinned.Take(cells.count() * kSquareLanes * sizeof(double));
      device->device.Squares(gradient, lanes());
    }
  } else if (work_.measure) {
    const FloatEnvironment environment;  // this is the program's thread
    output_.gradient_square = GradientSquare::Of(cells, gradient);
  }
  return {.epoch = work_.epoch,
          .step = work_.step,
          .schedule_step = work_.schedule_step,
          .doublings = work_.doublings,
          .last_of_epoch = work_.last_of_epoch,
          .gradient = gradient,
          .buffers = work_.buffers.view,
          .sums = work_.sums};
}

std::span<double> RunningCommit::lanes() const {
  return {reinterpret_cast<double*>(lanes_.view.data()), lanes_.view.size() / sizeof(double)};
}

void RunningCommit::Release() {
  gradient_ = {};
  work_.mean.values = {};
}

void RunningCommit::Complete() {
  if (work_.measure) output_.gradient_square = GradientSquare::OfLanes(lanes());
}

}  // namespace pliant
