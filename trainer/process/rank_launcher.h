#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "trainer/process/learner_environment.h"

namespace pliant {

// A learner with several GPUs runs one process (rank) of the same program per GPU, under this
// process.

// The environment of a rank: that of the learner, plus the rank's local rank, the learner's nonce,
// one of the visible GPUs, a termination log of its own, and a folder of the pod in which ranks
// meet to share memory, unless one is set already.
std::vector<std::string> EnvironmentOfRank(const std::vector<std::string>& environment, int rank,
                                           int ranks, std::uint64_t nonce,
                                           const std::string& folder);

// Decides, as the ranks end one after the other, when to stop the others and how the learner ends.
// Without I/O.
class RankExits {
 public:
  explicit RankExits(int ranks) : running_(ranks) {}

  // True: ask the others to leave. After one has failed they cannot continue.
  bool OnEnd(int rank, int exit_code);
  bool all_ended() const { return running_ == 0; }
  // The rank whose end counts as the learner's: the first that failed, else rank 0.
  int decisive_rank() const { return first_failed_.value_or(0); }
  int exit_code() const { return exit_code_; }

 private:
  int running_;
  std::optional<int> first_failed_;
  int exit_code_ = 0;
};

// In the launcher of a learner with several ranks: starts this program again once per rank, passes
// stop signals on, and ends with the ranks; it does not return. In a rank: makes it end with its
// launcher. In any other process it does nothing. Must be called first of all.
void LaunchRanks(const GetEnvironment& get);

}  // namespace pliant
