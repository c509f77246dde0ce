#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "trainer/collective/byte_pool.h"
#include "trainer/collective/communicators.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/memory_source.h"
#include "trainer/protocol/program.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/tick_side.h"

namespace pliant {

// A commit while the program does it. A device uses its memory until the commit has ended.
struct RunningCommit {
  CommitWork work;
  FloatBuffer gradient;  // the mean, in the place of the program's gradients
  MutableBytes lanes;    // on a device that measures: the gradient's squares by lane
  CommitOutput output;
};

// The place of a program's gradients, for the life of a learner: HostGradients or DeviceGradients.
// Everything that differs between the two is behind this interface and TickSide.
class GradientPlace {
 public:
  explicit GradientPlace(GradientAccumulator accumulator) : accumulator_(std::move(accumulator)) {}
  virtual ~GradientPlace() = default;
  GradientPlace(const GradientPlace&) = delete;
  GradientPlace& operator=(const GradientPlace&) = delete;

  // The sums of the running tick. Used by whoever has the tick: the loop, then the program's
  // thread, then the loop again.
  GradientAccumulator& accumulator() { return accumulator_; }

  // Whether the mean of a step may stay here: see DeviceStep.
  virtual bool keeps_means() const = 0;
  // The communicators between such places of several ranks; nullptr if there are none.
  virtual Communicators* communicators() = 0;

  // ---- Where the tick is ----
  // This side of a tick. `work` and `control` outlive it.
  virtual std::unique_ptr<TickSide> NewTick(const TickWork& work, TickControl& control,
                                            TickSide::OnPart on_part) = 0;
  // Queues copies of all sums to host memory: the nodes of the last tick.
  virtual void CopyNodes(std::vector<HeldNode>& nodes) = 0;
  // `done` is called when all that is queued is complete: at once, or later on another thread.
  virtual void Then(std::function<void(const Status&)> done) = 0;

  // ---- The program's thread ----
  // Prepares the gradient that the program reads, and measures it if that is wanted.
  virtual void Begin(RunningCommit& commit) = 0;
  // The program has queued its work on the commit. `done` is called, at once or later on another
  // thread, when the commit's output is there.
  virtual void End(std::shared_ptr<RunningCommit> commit,
                   std::function<void(const Status&)> done) = 0;

  // Ends all work, at the end of the learner. Returns false if it does not come to an end.
  virtual bool Drain() = 0;

 private:
  GradientAccumulator accumulator_;
};

// Shards of one learner in a tick.
struct ShardsOfLearner {
  int expected = 1;  // the most with as many learners as the job asks for: memory is taken for them
  int ever = 1;      // the most with any number of learners
};

// The place of `program`'s gradients: its device, or `memory`, which also takes sums that leave a
// device. Both outlive the result. Throws std::bad_alloc, or fails, if there is no room.
Result<std::unique_ptr<GradientPlace>> MakeGradientPlace(ProgramView& program,
                                                         const ShardsOfLearner& shards,
                                                         MemorySource& memory = HeapMemory());

}  // namespace pliant
