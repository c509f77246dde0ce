#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/runtime/program.h"

namespace pliant {

// What a program is asked to do whose own thread fetches its work.
struct Work {
  enum class Kind { kTrain, kEvaluate, kCommit, kEvaluated, kLoaded };
  Kind kind = Kind::kTrain;
  ShardTask task;                // kTrain, kEvaluate
  std::span<float> gradient;     // kTrain: to be written
  std::span<std::byte> buffers;  // kTrain: of shard 0
  GradientSink* sink = nullptr;  // kTrain: as for ComputeShard, while it is not answered
  std::span<const float> left;   // kTrain: as for AddShard; empty: it is ComputeShard
  bool* added = nullptr;         // kTrain: with `left`, and while it is not answered
  CommitTask commit;             // kCommit
  EvaluationTask evaluation;     // kEvaluated
};

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
