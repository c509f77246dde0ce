#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "operator/api/elastic_training_job.h"

// The mode of the operator that needs no cluster: it makes the plan of a file again.
namespace pliant::replay {

struct ReplayOptions {
  std::string snapshot_file;  // "-": standard input; "": none
  std::string job_file;       // YAML of a job to add; "": none
  bool json = false;          // print the plan as JSON instead of tables
  api::JobSettings jobs;

  bool is_asked() const { return !snapshot_file.empty() || !job_file.empty(); }
};

inline constexpr int kSamePlan = 0;
inline constexpr int kOtherPlan = 1;
inline constexpr int kBadInput = 2;

// Prints the plan to `out`; differences and errors to `errors`. Returns the exit code: kOtherPlan
// if the file has a plan, and this operator makes another one. With a job to add, it prints what
// would change instead of comparing.
int Replay(const ReplayOptions& options, std::istream& in, std::ostream& out, std::ostream& errors);

}  // namespace pliant::replay
