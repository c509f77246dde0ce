#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/operator/cluster.h"

namespace pliant::operator_sim {

// What must always hold of the objects (DESIGN §11, as far as the operator answers for it), checked
// after every change.
class Invariants {
 public:
  // `gpus_of`: that a node has in all.
  Invariants(kube::MemoryApiServer& server, std::function<int(const std::string& node)> gpus_of)
      : server_(server), gpus_of_(std::move(gpus_of)) {}

  // From now on no job has fewer learners than its minimum, unless it has none: nothing takes any
  // away. Otherwise one that lost learners may keep the rest for a while.
  void DemandMinimums() { always_minimum_ = true; }
  void OnChange(const std::string& path, const kube::MemoryApiServer::Object& object);
  void Violated(const std::string& what) { violations_.push_back(what); }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct JobSeen {
    std::string name;  // as JobOf() has it
    bool finished = false;
    std::string phase;
    int least = 1;  // of all minimums and maximums that it had
    int most = 1;
    int learners = 0;  // that it ever had
    std::map<std::string, std::int64_t> counters;
  };

  void OnJob(const Json& job);
  void OnPod(const std::string& path, const Json& pod);
  void CheckNode(const std::string& node);
  void CheckSize(const std::string& job_uid, const JobSeen& job);

  kube::MemoryApiServer& server_;
  const std::function<int(const std::string& node)> gpus_of_;
  std::map<std::string, JobSeen> jobs_;  // by uid
  bool always_minimum_ = false;
  std::map<std::string, std::string> names_;  // of pods, with the uid that had it
  // Of coordinators, by the job's uid and their term, under which they number its memberships.
  std::map<std::pair<std::string, std::string>, std::string> terms_;
  std::vector<std::string> violations_;
};

}  // namespace pliant::operator_sim
