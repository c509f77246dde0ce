#include "simulator/inputs/scenario_jobs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/format.h"
#include "operator/api/elastic_training_job.h"
#include "operator/replay/describe.h"
#include "operator/replay/enumerators.h"
#include "simulator/inputs/fields.h"
#include "simulator/inputs/values.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::array<std::string_view, 12> kJobKeys = {
    "name",     "submit",         "profile", "batch",           "min",     "max", "queue",
    "priority", "gpusPerLearner", "gpus",    "reproducibility", "deadline"};
constexpr std::int64_t kMillisPerSecond = 1000;

class JobReader {
 public:
  JobReader(std::string_view file, const Profiles& profiles,
            const std::vector<planner::NodeView>& nodes,
            const std::vector<planner::QueueView>& queues)
      : file_(file), profiles_(profiles) {
    for (const planner::NodeView& node : nodes) ++nodes_[node.allocatable.gpus];
    for (const planner::QueueView& queue : queues) queues_.insert(queue.name);
    queues_.emplace(planner::kBuiltInQueue);
  }

  Result<ScenarioJob> Read(const YamlValue& value) {
    ASSIGN_OR_RETURN(const Fields unnamed, Fields::Open(file_, value, "a job", kJobKeys));
    ScenarioJob job;
    ASSIGN_OR_RETURN(job.spec.name, unnamed.Name("name", "a"));
    ASSIGN_OR_RETURN(const Fields fields,
                     Fields::Open(file_, value, "job " + job.spec.name, kJobKeys));
    const auto [first, is_new] = lines_.emplace(job.spec.name, value.line);
    if (!is_new) {
      return fields.Wrong(
          Format("job {} is there already, at line {}; rename one", job.spec.name, first->second));
    }
    RETURN_IF_ERROR(ReadTraining(fields, job.spec));
    RETURN_IF_ERROR(ReadTimes(fields, job));
    RETURN_IF_ERROR(ReadSharing(fields, job));
    RETURN_IF_ERROR(ReadLearners(fields, job));
    RETURN_IF_ERROR(CheckFits(fields, job));
    return job;
  }

 private:
  Status ReadTraining(const Fields& fields, JobSpec& spec) const {
    ASSIGN_OR_RETURN(const std::string name, fields.Name("profile", "cifar10"));
    const std::optional<std::size_t> application = profiles_.Find(name);
    if (!application) {
      return fields.Wrong("profile", Format("is {}, which is no profile; use one of {}",
                                            Shown(std::string_view(name)), profiles_.Names()));
    }
    spec.application = *application;
    const Profile& profile = profiles_[*application];
    ASSIGN_OR_RETURN(const std::int64_t batch,
                     fields.Whole("batch", profile.min_batch(),
                                  {.min = profile.min_batch(), .max = profile.max_batch()}));
    spec.batch = static_cast<int>(batch);
    return {};
  }

  static Status ReadTimes(const Fields& fields, ScenarioJob& job) {
    ASSIGN_OR_RETURN(const std::optional<std::int64_t> submit, fields.OptionalMillis("submit"));
    const std::int64_t submitted = submit.value_or(0);
    if (submitted % kMillisPerSecond != 0) {
      return fields.Wrong("submit", Format("is {}ms; write whole seconds, for example {}s",
                                           submitted, submitted / kMillisPerSecond));
    }
    job.spec.submitted_seconds = submitted / kMillisPerSecond;
    ASSIGN_OR_RETURN(job.deadline, fields.OptionalMillis("deadline"));
    if (job.deadline && *job.deadline <= submitted) {
      return fields.Wrong("deadline",
                          Format("is not after its submission at {}s; write a later time since the "
                                 "beginning of the run",
                                 job.spec.submitted_seconds));
    }
    return {};
  }

  Status ReadSharing(const Fields& fields, ScenarioJob& job) const {
    if (fields.Find("queue") != nullptr) {
      ASSIGN_OR_RETURN(job.queue, fields.Name("queue", "default"));
    }
    if (!queues_.contains(job.queue)) {
      return fields.Wrong("queue",
                          Format("is {}, which is no queue; add it to 'queues', or use one of {}",
                                 job.queue, Listed(queues_)));
    }
    ASSIGN_OR_RETURN(const std::int64_t priority,
                     fields.Whole("priority", job.priority, replay::kPriority));
    job.priority = static_cast<int>(priority);
    ASSIGN_OR_RETURN(job.reproducibility, fields.Word("reproducibility", job.reproducibility,
                                                      replay::kLast<planner::Reproducibility>));
    return {};
  }

  Status ReadLearners(const Fields& fields, ScenarioJob& job) const {
    const Profile& profile = profiles_[job.spec.application];
    const int batch = job.spec.batch;
    ASSIGN_OR_RETURN(const std::int64_t gpus_each,
                     fields.Whole("gpusPerLearner", 1, replay::kGpusPerLearner));
    job.gpus_per_learner = static_cast<int>(gpus_each);
    const int allowed = MaxLearnersOf(profile, batch, job.gpus_per_learner);
    if (allowed == 0) {
      return fields.Wrong(
          "gpusPerLearner",
          Format("is {}; a batch of {} is enough for at most {} GPUs of profile {}",
                 job.gpus_per_learner, batch, profile.MaxLearners(batch), profile.application()));
    }
    ASSIGN_OR_RETURN(const std::int64_t min, fields.Whole("min", 1, replay::kLearners));
    ASSIGN_OR_RETURN(const std::int64_t max, fields.Whole("max", allowed, replay::kLearners));
    for (const auto& [key, learners] : {std::pair("min", min), std::pair("max", max)}) {
      if (learners <= allowed) continue;
      return fields.Wrong(
          key, Format("is {}; a batch of {} is enough for at most {} learners of profile {}",
                      learners, batch, allowed, profile.application()));
    }
    if (min > max) {
      return fields.Wrong("min",
                          Format("is {}, more than 'max', which is {}; lower one, or raise the "
                                 "other",
                                 min, max));
    }
    job.min_learners = static_cast<int>(min);
    job.max_learners = static_cast<int>(max);
    ASSIGN_OR_RETURN(const std::int64_t gpus,
                     fields.Whole("gpus", min * gpus_each, {1, batch / profile.min_local()}));
    job.spec.gpus = static_cast<int>(gpus);
    return {};
  }

  // Learners of this many GPUs that the empty nodes have room for.
  std::int64_t RoomFor(int gpus_each) {
    const auto [at, is_new] = room_.emplace(gpus_each, 0);
    if (is_new) {
      for (const auto& [gpus, count] : nodes_) at->second += count * (gpus / gpus_each);
    }
    return at->second;
  }

  Status CheckFits(const Fields& fields, const ScenarioJob& job) {
    const std::int64_t room = RoomFor(job.gpus_per_learner);
    if (room >= job.min_learners) return {};
    const std::int64_t largest = nodes_.rbegin()->first;
    if (room == 0) {
      return fields.Wrong(
          Format("job {} needs {} on one node, and the largest node has {}; lower "
                 "'gpusPerLearner', or add larger nodes",
                 job.spec.name, Counted(job.gpus_per_learner, "GPU"), largest));
    }
    return fields.Wrong(
        Format("job {} needs {} of {}, and the nodes have room for {}: the largest has {}; lower "
               "'min', or add nodes",
               job.spec.name, Counted(job.min_learners, "learner"),
               Counted(job.gpus_per_learner, "GPU"), room, Counted(largest, "GPU")));
  }

  std::string_view file_;
  const Profiles& profiles_;
  std::map<std::int64_t, std::int64_t> nodes_;  // nodes by their GPUs
  std::set<std::string> queues_;
  std::map<std::string, int> lines_;  // by job
  std::map<int, std::int64_t> room_;  // by GPUs per learner
};

}  // namespace

int MaxLearnersOf(const Profile& profile, int batch, int gpus_per_learner) {
  return std::min(profile.MaxLearners(batch) / gpus_per_learner, api::kMaxLearners);
}

Result<std::vector<ScenarioJob>> ReadJobs(std::string_view file, std::span<const YamlValue> items,
                                          const Profiles& profiles,
                                          const std::vector<planner::NodeView>& nodes,
                                          const std::vector<planner::QueueView>& queues) {
  JobReader reader(file, profiles, nodes, queues);
  std::vector<ScenarioJob> jobs;
  for (const YamlValue& item : items) {
    ASSIGN_OR_RETURN(ScenarioJob job, reader.Read(item));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace pliant::simulator
