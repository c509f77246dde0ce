#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "operator/planner/cluster_snapshot.h"
#include "simulator/events/work.h"

// The jobs of a run, and what else happens in it. Times are milliseconds since its beginning.
namespace pliant::simulator {

// A job that is submitted during the run, or was before.
struct SimulatedJob {
  // Its key, queue, sizes, priority and needs, as the planner sees them. The run fills in the rest.
  planner::JobView view;
  std::int64_t submitted = 0;
  // It is there when the run begins: its view also has its learners and its earlier times, before
  // kBegin. Its learners are on nodes of the run.
  bool is_present = false;
  std::shared_ptr<const Work> work;  // never null
  std::string application;           // for reports; "": unknown
  std::optional<std::int64_t> deadline;
};

struct NodeSchedulable {
  std::string node;
  bool schedulable = true;  // false: cordoned
};
struct NodeLost {
  std::string node;
  std::int64_t for_time = 0;
};
struct JobPriority {
  std::string job;
  int priority = 1;
};
struct JobEnds {
  std::string job;
};

// Something that an administrator, a user or a fault does. It has no effect on what does not exist
// at that time.
struct ClusterChange {
  std::int64_t at = 0;
  std::variant<NodeSchedulable, NodeLost, JobPriority, JobEnds> what;
};

}  // namespace pliant::simulator
