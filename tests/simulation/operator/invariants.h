#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/operator/cluster.h"

namespace pliant::operator_sim {

// The invariants of the objects for which the operator is responsible, checked after every change.
class Invariants {
 public:
  // `gpus_of`: the number of GPUs of a node.
  Invariants(kube::MemoryApiServer& server, std::function<int(const std::string& node)> gpus_of)
      : server_(server), gpus_of_(std::move(gpus_of)) {}

  // From now on no job has fewer learners than its minimum, unless it has none: the story takes no
  // learner away. Without this, a job that lost learners may keep the rest for a while.
  void DemandMinimums() { always_minimum_ = true; }
  void OnChange(const std::string& path, const kube::MemoryApiServer::Object& object);
  void Violated(const std::string& what) { violations_.push_back(what); }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct JobSeen {
    std::string name;  // in the form of JobOf()
    bool finished = false;
    std::string phase;
    int least = 1;  // the lowest and highest of all minimums and maximums that it ever had
    int most = 1;
    int learners = 0;  // learners created so far
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
  std::map<std::string, std::string> names_;  // pod names, with the uid of the pod that had the
                                              // name
  // Coordinator pods by job uid and term. The term numbers the memberships that a coordinator
  // issues.
  std::map<std::pair<std::string, std::string>, std::string> terms_;
  std::vector<std::string> violations_;
};

}  // namespace pliant::operator_sim
