#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "trainer/process/learner_environment.h"

namespace pliant {

// A learner of several GPUs is as many processes of one program, its ranks, under this process.

// What makes a process a rank, over the environment that the learner was started with: its local
// rank, the learner's nonce, one GPU of those that are visible, and a folder of the pod in which
// ranks meet to share memory, unless there is one already.
std::vector<std::string> EnvironmentOfRank(const std::vector<std::string>& environment, int rank,
                                           int ranks, std::uint64_t nonce,
                                           const std::string& folder);

// Who is to be stopped, and how it all ends, as the ranks end one after the other. Without I/O.
class RankFates {
 public:
  explicit RankFates(int ranks) : running_(ranks) {}

  // True: the others are to be asked to leave. When one has failed they are of no use.
  bool OnEnd(int rank, int exit_code);
  bool all_ended() const { return running_ == 0; }
  // Whose end is the learner's: the first that failed, else rank 0.
  int decisive_rank() const { return first_failed_.value_or(0); }
  int exit_code() const { return exit_code_; }

 private:
  int running_;
  std::optional<int> first_failed_;
  int exit_code_ = 0;
};

// In the process that is a learner of several ranks: starts this program again once for each of
// them, passes stop signals on, and ends with them: it does not return. In any other, and in a
// rank, it does nothing. To be called first of all.
void LaunchRanks(const GetEnvironment& get);

}  // namespace pliant
