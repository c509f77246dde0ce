#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/model/run_record.h"

namespace pliant::simulator {

// Three jobs on 4 GPUs for 100 s. The first misses its deadline, the second meets it, and the
// third waits to the end.
//   a: submitted at 0 s, 4 GPUs at 0 s, first step at 10 s, 2 GPUs at 30 s, completed at 50 s
//   b: submitted at 20 s, 2 GPUs at 30 s, first step at 40 s, 4 GPUs at 50 s, completed at 100 s
//   c: submitted at 60 s
RunRecord ThreeJobs();

// Jobs that are submitted at 0 s and complete after these times, each on one GPU.
RunRecord CompletedAfter(std::string policy, std::string workload, std::vector<int> seconds);

// `jobs` jobs of six applications share 64 GPUs equally, in rounds of 60 s, until all have
// completed. `factor`: of the work of each.
RunRecord BusyRun(std::string policy, int jobs, double factor);

// The first error in the tags, attributes or entities of XML; empty if there is none.
std::string WrongInXml(std::string_view text);

}  // namespace pliant::simulator
