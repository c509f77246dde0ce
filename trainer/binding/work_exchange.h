#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <variant>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/protocol/program.h"

namespace pliant {

struct ShardWork {
  ShardTask task;
  // Of a training shard.
  std::span<float> gradient;     // to be written
  std::span<std::byte> buffers;  // of shard 0
  GradientSink* sink = nullptr;  // as for ComputeShard, while it is not answered
  std::span<const float> left;   // as for AddShard; empty: it is ComputeShard
  bool* added = nullptr;         // with `left`, and while it is not answered
};
// Another state was loaded.
struct LoadedWork {};

// What a program is asked to do whose own thread fetches its work.
using Work = std::variant<ShardWork, CommitTask, EvaluationTask, LoadedWork>;

// Hands one piece of work at a time from the thread that wants it done to the thread that does it.
class WorkExchange {
 public:
  // ---- The thread that wants it done ----

  // Waits until it is done. What was given to Refuse, from then on.
  Result<ShardSums> Ask(const Work& work);

  // ---- The thread that does it ----

  // Waits for work, at most so long (without `most`: for ever). False: none in this time, or no
  // more. `work` is one that was taken before, for its memory.
  bool Take(std::optional<Duration> most, Work& work);
  // Of the work that was taken.
  void Answer(Result<ShardSums> answer);

  // ---- Any thread ----

  // Whoever asks, or asked, gets this error.
  void Refuse(const Error& error);
  // Nobody will ask any more.
  void End();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  const Work* offered_ = nullptr;
  bool waiting_ = false;  // for the answer to what was taken
  std::optional<Result<ShardSums>> answer_;
  std::optional<Error> refusal_;
  bool ended_ = false;
};

}  // namespace pliant
