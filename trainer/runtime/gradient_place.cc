#include "trainer/runtime/gradient_place.h"

#include "trainer/runtime/device_gradients.h"
#include "trainer/runtime/host_gradients.h"

namespace pliant {

Result<std::unique_ptr<GradientPlace>> MakeGradientPlace(ProgramView& program,
                                                         const ShardsOfLearner& shards,
                                                         MemorySource& memory) {
  GradientCells cells = CellsOf(program.info());
  if (GradientDevice* const device = program.gradient_device())
    return std::make_unique<DeviceGradients>(
        GradientAccumulator(std::move(cells), shards.expected, *device), *device, memory);
  GradientAccumulator accumulator(std::move(cells), shards.ever, memory);
  RETURN_IF_ERROR(accumulator.Populate(shards.expected));
  return std::make_unique<HostGradients>(std::move(accumulator));
}

}  // namespace pliant
