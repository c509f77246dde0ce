#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// The record of a simulated run. Times are milliseconds since its beginning.
namespace pliant::simulator {

// A job from one change of its GPUs or its batch to the next.
struct SizeAt {
  std::int64_t at = 0;
  int gpus = 0;   // that it holds; 0: it waits, or has ended
  int batch = 0;  // samples a step; 0: unknown
  bool operator==(const SizeAt&) const = default;
};

struct JobRecord {
  std::string name;
  std::string application;  // "": unknown
  std::string queue;        // "": there are no queues
  std::int64_t submitted = 0;
  std::optional<std::int64_t> started;    // first step; absent: it waited to the end
  std::optional<std::int64_t> completed;  // absent: it was not done at the end
  std::optional<std::int64_t> deadline;   // absent: none
  std::vector<SizeAt> sizes;              // of rising times
  int resizes = 0;                        // changes of its GPUs while it trained
  int moves = 0;                          // of these, the ones in which it left all of its nodes
  double gpu_seconds = 0;                 // that it held
  // The same, each weighted by speed / (learners · speed of one learner).
  double useful_gpu_seconds = 0;
  double lost_seconds = 0;  // of training that failures undid
  // The last plan's reason, of a job that was not done at the end; "": there is none.
  std::string undone;
  bool operator==(const JobRecord&) const = default;
};

struct RunRecord {
  std::string policy;    // "FairShare", "tiresias"
  std::string workload;  // its name for people, such as "workload-1"
  int gpus = 0;          // of the cluster
  std::int64_t end = 0;
  std::int64_t plans = 0;
  std::vector<JobRecord> jobs;  // in the order of the workload
  bool operator==(const RunRecord&) const = default;
};

}  // namespace pliant::simulator
