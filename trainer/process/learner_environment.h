#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "trainer/collective/buckets.h"
#include "trainer/process/replay_range.h"
#include "trainer/protocol/work_split.h"

namespace pliant {

// The settings that the operator gives to a learner's process (docs/contracts.md §3). Without a
// coordinator the process trains alone, and every setting has a default.
struct LearnerEnvironment {
  // Only tests set these.
  struct Test {
    std::optional<std::uint64_t> bucket_bytes;  // of the gradient; equal on all learners
    std::uint64_t checkpoint_slice_bytes = std::uint64_t{1} << 30;  // minimum bytes per writer
    std::uint64_t check_state_every_steps = 100;                    // 0: never
    std::filesystem::path ledger_dir;  // empty: no ledger of samples is kept
  };
  struct Coordinator {
    std::string host;
    std::string port;
    std::filesystem::path ca_file;
    std::string token;           // the learners', read from its file; for the coordinator
    std::string peer_key;        // read from its file; for the other learners
    std::uint64_t min_term = 0;  // coordinators of lower terms are not obeyed
  };
  std::optional<Coordinator> coordinator;  // none: alone

  std::string learner = "local";  // name and uid of the pod
  std::string pod_uid;
  std::string pod_ip = "127.0.0.1";
  int ranks_per_learner = 1;  // processes, one per GPU
  int local_rank = 0;
  std::optional<std::uint64_t> nonce;  // of the learner, from its launcher; none: drawn here
  std::string job;
  std::string job_uid = "local";

  std::filesystem::path checkpoint_dir = "checkpoints";
  std::uint64_t checkpoint_every_steps = 0;             // 0: not by steps
  Duration checkpoint_every = std::chrono::minutes(5);  // zero: not by time
  int checkpoints_kept = 3;
  // The folder of another job, or of a checkpoint, to begin from. Empty: none.
  std::filesystem::path resume_from;

  // Set: nothing is trained. Steps are computed again, alone, and compared with checkpoints.
  std::optional<ReplayRange> replay;

  // Absent: the program's own values.
  std::optional<std::uint64_t> global_batch_size;
  // The batch grows with the noise scale, up to this size. None: it is constant.
  std::optional<std::uint64_t> max_batch_size;
  std::optional<int> logical_shards;
  std::optional<std::uint64_t> seed;
  Reproducibility reproducibility = Reproducibility::kBitwise;
  int min_learners = 1;
  std::optional<int> max_learners;  // none: not set

  // Gradients may travel from GPU to GPU, over NCCL, which neither encrypts nor authenticates.
  bool exchange_over_nccl = false;

  Duration grace = std::chrono::seconds(60);
  Duration step_timeout{};  // maximum for one call to the program; zero: no limit
  // Learners on one machine that can open this folder use shared memory. Empty: they use TCP.
  std::filesystem::path shared_memory_dir;
  std::filesystem::path pace_file;            // for PacedThread; empty: none
  std::optional<std::uint16_t> metrics_port;  // none: no /metrics; 0: any free one
  std::filesystem::path termination_log;      // empty: alone, nobody reads one
  Test test;
};

// The value of a variable, or nullptr: std::getenv.
using GetEnvironment = std::function<const char*(const char* name)>;

// kInvalid, naming the variable and what it should be. An empty variable counts as absent.
Result<LearnerEnvironment> ReadLearnerEnvironment(const GetEnvironment& get);

// "20", "20-60": see ReplayRange.
Result<ReplayRange> ParseReplayRange(const std::string& text);

// The path of the termination message, also when the rest of the environment is wrong.
std::filesystem::path TerminationLogPath(const GetEnvironment& get);

// How the gradient is cut into buckets.
BucketSizes BucketSizesOf(const LearnerEnvironment& environment);
BucketSizes BucketSizesOfRounds(const LearnerEnvironment& environment);

// The most learners that the job may have; alone, 1.
int MaxLearnersOf(const LearnerEnvironment& environment);

}  // namespace pliant
