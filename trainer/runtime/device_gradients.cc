#include "trainer/runtime/device_gradients.h"

#include <type_traits>
#include <utility>

#include "trainer/collective/float_loops.h"
#include "trainer/collective/gradient_square.h"
#include "trainer/runtime/host_gradients.h"

namespace pliant {
namespace {

std::span<double> LanesOf(const RunningCommit& commit) {
  const std::span<std::byte> bytes = commit.lanes.view;
  return {reinterpret_cast<double*>(bytes.data()), bytes.size() / sizeof(double)};
}

}  // namespace

DeviceGradients::DeviceGradients(GradientAccumulator accumulator, GradientDevice& device,
                                 MemorySource& sums)
    : GradientPlace(std::move(accumulator)),
      device_(device),
      pinned_(kTickBytesKept, device.pinned_memory()),
      sums_(this->accumulator().cells().elements(), 0, sums),
      means_(this->accumulator().cells().elements(), 1, device.memory()) {}

std::unique_ptr<TickSide> DeviceGradients::NewTick(const TickWork& work, TickControl& control,
                                                   TickSide::OnPart on_part) {
  const auto make = [&]<typename Tick>(std::type_identity<Tick>) -> std::unique_ptr<TickSide> {
    return std::make_unique<Tick>(memory(), accumulator(), work, control, std::move(on_part));
  };
  if (!work.device_step) return make(std::type_identity<DeviceTick>());
  if (work.device_step->rounds) return make(std::type_identity<RoundsTick>());
  return make(std::type_identity<WholeDeviceTick>());
}

void DeviceGradients::CopyNodes(std::vector<HeldNode>& nodes) {
  DeviceTick::CopyNodes(accumulator(), memory(), nodes);
}

void DeviceGradients::Begin(RunningCommit& commit) {
  commit.gradient = commit.work.mean.values;
  if (!commit.work.mean.on_device) {
    commit.gradient = means_.Take();
    device_.ToDevice(std::as_bytes(commit.work.mean.values.view()),
                     std::as_writable_bytes(commit.gradient.view()));
  }
  if (!commit.work.measure) return;
  commit.lanes = pinned_.Take(accumulator().cells().count() * kSquareLanes * sizeof(double));
  device_.Squares(commit.gradient.view(), LanesOf(commit));
}

void DeviceGradients::End(std::shared_ptr<RunningCommit> commit,
                          std::function<void(const Status&)> done) {
  // Work that the next tick queues for the same memory comes behind what is queued now.
  commit->gradient = {};
  commit->work.mean.values = {};
  if (!commit->work.measure) {
    // Nothing of the device is awaited: it only keeps the commit's other memory.
    device_.Then([commit = std::move(commit)](const Status&) {});
    return done({});
  }
  device_.Then([commit = std::move(commit), done = std::move(done)](const Status& measured) {
    if (measured) commit->output.gradient_square = GradientSquare::OfLanes(LanesOf(*commit));
    done(measured);
  });
}

}  // namespace pliant
