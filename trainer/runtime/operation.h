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
  // Of a training shard.
  std::span<float> gradient;     // to be written
  std::span<std::byte> buffers;  // of shard 0
  GradientSink* sink = nullptr;  // as for Program::ComputeShard
  std::span<const float> left;   // as for Program::AddShard; empty: it is ComputeShard
  bool* added = nullptr;         // with `left`
};
// Another state was loaded.
struct LoadedWork {};

// One call to a program.
using Work = std::variant<ShardWork, CommitTask, EvaluationTask, LoadedWork>;

// What is asked of a program, call by call: whoever has the program's thread takes one piece of
// work, does it, says how it ended, and takes the next. One thread at a time.
class Operation {
 public:
  virtual ~Operation() = default;

  // None: it is over.
  virtual std::optional<Work> Next() = 0;
  // How what Next gave last has ended. Of no shard the sums do not matter.
  virtual void Done(Result<ShardSums> sums) = 0;
  // Whether nothing is left to do: Next would give none.
  virtual bool over() const = 0;
};

}  // namespace pliant
