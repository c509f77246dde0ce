#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/model/job_model.h"
#include "simulator/model/placement.h"
#include "simulator/model/profile.h"
#include "simulator/model/workload.h"

namespace pliant::simulator {

// GPUs of one node.
struct NodeShare {
  int node = 0;
  int gpus = 1;
  bool operator==(const NodeShare&) const = default;
};

// The GPUs of one job, each node once, in the order in which they were taken: this is the order of
// the ring of learners, on which the time of a step depends. Empty: the job waits.
using Allocation = std::vector<NodeShare>;

int GpusOf(const Allocation& allocation);
Placement PlacementOf(const Allocation& allocation);

// A job that is submitted and not done.
struct RoundJob {
  std::size_t index = 0;             // in the workload
  const JobSpec* spec = nullptr;     // never null; outlives the run
  const Profile* profile = nullptr;  // never null; outlives the run
  Training training;
  Allocation held;                // since the last plan
  std::int64_t held_seconds = 0;  // whole rounds in which it held GPUs, starts included
};

struct RoundView {
  std::int64_t now_seconds = 0;
  std::vector<int> node_gpus;  // by node
  std::vector<RoundJob> jobs;  // in the order of the workload
};

// Decides from its view and from its earlier views. One object serves one run.
class RoundPolicy {
 public:
  virtual ~RoundPolicy() = default;
  // One allocation for each job of the view. Together they have at most the GPUs of each node.
  virtual std::vector<Allocation> Allocate(const RoundView& view) = 0;
};

}  // namespace pliant::simulator
