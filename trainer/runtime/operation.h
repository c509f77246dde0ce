#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <variant>

#include "base/result.h"
#include "trainer/protocol/program.h"

namespace pliant {

// One shard. What it points to is valid until it is done.
struct ShardWork {
  const ShardTask* task = nullptr;
  // For a training shard:
  std::span<float> gradient;     // to be written
  std::span<std::byte> buffers;  // to be written by shard 0
  GradientSink* sink = nullptr;  // as for Program::ComputeShard
  std::span<const float> left;   // as for Program::AddShard; empty: ComputeShard
  bool* added = nullptr;         // with `left`
  // Memory for loss, correct and the named sums in the order of their names. A program whose
  // gradients are on a device may have the device write the first ones there instead of reporting
  // them, and sets their number; empty: it may not.
  std::span<double> sums;
  std::size_t* sums_follow = nullptr;  // with `sums`
};
// Another state was loaded.
struct LoadedWork {};

// One call to a program.
using Work = std::variant<ShardWork, CommitTask, EvaluationTask, LoadedWork>;

// A sequence of calls to a program. The holder of the program's thread takes one piece of work,
// does it, reports the result, and takes the next. One thread at a time.
class Operation {
 public:
  virtual ~Operation() = default;

  // None: the operation is over.
  virtual std::optional<Work> Next() = 0;
  // Reports how the last work of Next has ended. The sums count only for a shard.
  virtual void Done(Result<ShardSums> sums) = 0;
  // Nothing is left to do: Next would return none.
  virtual bool over() const = 0;
};

}  // namespace pliant
