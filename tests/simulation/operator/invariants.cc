#include "tests/simulation/operator/invariants.h"

#include <algorithm>

#include "base/format.h"
#include "operator/controller/model/names.h"
#include "tests/simulation/operator/objects.h"

namespace pliant::operator_sim {

void Invariants::OnChange(const std::string& path, const kube::MemoryApiServer::Object& object) {
  if (object == nullptr) return;
  if (kube::IsIn(kAllJobs, path)) OnJob(*object);
  if (kube::IsIn(kPods, path)) OnPod(path, *object);
}

void Invariants::OnJob(const Json& job) {
  JobSeen& seen = jobs_[UidOf(job)];
  const bool first = seen.name.empty();
  seen.name = JobOf(job);
  const Json& elastic = job.at("spec").at("elastic");
  const int least = elastic.at("minLearners");
  const int most = elastic.at("maxLearners");
  seen.least = first ? least : std::min(seen.least, least);
  seen.most = first ? most : std::max(seen.most, most);

  const Json status = job.value("status", Json::object());
  const std::string phase = status.value("phase", "");
  if (seen.finished && phase != seen.phase) {
    Violated(Format("job {} was {} and is {}", seen.name, seen.phase, phase));
  }
  seen.finished = phase == "Succeeded" || phase == "Failed";
  const int desired = status.value("desiredLearners", 0);
  const bool starts = phase == "Starting" && seen.phase != "Starting" && seen.learners == 0;
  const bool needs_minimum = starts || (always_minimum_ && desired > 0);
  if (desired > seen.most || (needs_minimum && desired < seen.least)) {
    Violated(Format("job {} is to have {} learners, and asked for {} to {}", seen.name, desired,
                    seen.least, seen.most));
  }
  seen.phase = phase;
  for (const char* counter : {"coordinatorTerm", "nextLearner", "restarts", "resizes"}) {
    const std::int64_t value = status.value(counter, std::int64_t{0});
    std::int64_t& before = seen.counters[counter];
    if (value < before) {
      Violated(Format("{} of job {} went from {} to {}", counter, seen.name, before, value));
    }
    before = value;
  }
}

void Invariants::OnPod(const std::string& path, const Json& pod) {
  if (!IsAmongJobs(pod)) return;
  const auto [name, is_new] = names_.try_emplace(path, UidOf(pod));
  if (name->second != UidOf(pod)) {
    Violated(Format("a second pod has the name {}", path));
    name->second = UidOf(pod);
  }
  const std::string uid = LabelOf(pod, controller::kLabelJobUid);
  JobSeen& job = jobs_[uid];
  if (job.name != JobOf(pod)) {
    Violated(Format("{} has the uid of job {}, and lies with job {}", path, job.name, JobOf(pod)));
  }
  if (LabelOf(pod, controller::kLabelRole) == controller::kRoleCoordinator) {
    const std::string term = LabelOf(pod, controller::kLabelTerm);
    const auto leads = terms_.try_emplace({uid, term}, UidOf(pod)).first;
    if (leads->second != UidOf(pod)) {
      Violated(Format("{} is another coordinator of term {}: its memberships get ids again", path,
                      term));
      leads->second = UidOf(pod);
    }
  }
  if (!IsLearner(pod)) return;
  if (is_new) ++job.learners;
  if (is_new && job.finished) {
    Violated(Format("{} was created for job {}, which is {}", path, job.name, job.phase));
  }
  if (is_new) CheckSize(uid, job);
  if (!IsGated(pod) && !HasEnded(pod)) CheckNode(NodeOf(pod));
}

// Counts pods that hold a GPU, or may take one at any moment.
void Invariants::CheckNode(const std::string& node) {
  int held = 0;
  for (const auto& [path, pod] : server_.All(kPods)) {
    const bool holds = IsAmongJobs(*pod) && IsLearner(*pod) && !HasEnded(*pod) && !IsGated(*pod);
    if (holds && NodeOf(*pod) == node) ++held;
  }
  if (held > gpus_of_(node)) {
    Violated(Format("{} learners may run on {}, which has {} GPUs", held, node, gpus_of_(node)));
  }
}

// Leaving learners do not count. The others are never more than the job asked for.
void Invariants::CheckSize(const std::string& job_uid, const JobSeen& job) {
  int gated = 0;
  for (const auto& [path, pod] : server_.All(kPods)) {
    const bool counts = IsAmongJobs(*pod) && LabelOf(*pod, controller::kLabelJobUid) == job_uid &&
                        IsLearner(*pod) && !HasEnded(*pod) && IsGated(*pod) &&
                        !pod->at("metadata").contains("deletionTimestamp");
    if (counts) ++gated;
  }
  if (gated > job.most) {
    Violated(Format("{} learners of job {} wait for a GPU, it asked for at most {}", gated,
                    job.name, job.most));
  }
}

}  // namespace pliant::operator_sim
