#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/format.h"
#include "operator/planner/apportion.h"
#include "tests/property/drawn_clusters.h"
#include "tests/unit/planner/builders.h"

// Properties of sequences of edits: what the owner of one job does costs the others nothing that
// they are entitled to.
namespace pliant::planner {
namespace {

// Jobs of one-GPU learners on some equal nodes, over time.
class Edits {
 public:
  explicit Edits(bool teams) {
    const int nodes = Draw(1, 3);
    gpus_ = nodes * Draw(2, 8);
    world_.snapshot.nodes = Nodes(nodes, gpus_ / nodes);
    if (teams) {
      world_.snapshot.queues = {{.name = "default", .weight = 25 * Draw(1, 4)},
                                {.name = "other", .weight = 25 * Draw(1, 4)}};
      QueueView& queue = world_.snapshot.queues[1];
      if (DrawOneIn(2)) queue.guaranteed_gpus = Draw(0, gpus_ / 2);
      if (DrawOneIn(3)) queue.limit_gpus = Draw(1, gpus_);
    }
    for (int jobs = Draw(1, 3); jobs > 0; --jobs) Submit();
    Settle();
  }

  void Submit() {
    const int min = Draw(1, std::max(gpus_ / 2, 1));
    JobOf job(Format("j{}", names_++), min, min + Draw(0, 8));
    job.Priority(Draw(1, 20)).Shards(4096);
    if (world_.snapshot.queues.size() > 1 && DrawOneIn(2)) job.Queue("other");
    job.view.submitted = world_.snapshot.now;
    job.view.cooldown = Seconds{0};
    world_.Submit(job);
    RC_LOG() << Format("submit {}: {} to {}\n", job.view.key.name, min, job.view.max_learners);
  }

  // Does something that a tenant may do to a job, and lets the cluster come to rest.
  void Edit() {
    const int what = Draw(0, 6);
    if (what == 0) {
      Submit();
      Settle();
      return;
    }
    JobView& job = AnyJob();
    std::map<std::string, LearnerCount> before = world_.Sizes();
    const bool raises = what <= 2 && before.contains(job.key.name);
    switch (what) {
      case 1:
      case 2:
        job.min_learners = Draw(job.min_learners, std::max(job.min_learners, gpus_));
        job.max_learners = std::max(job.max_learners, job.min_learners);
        break;
      case 3:
        job.min_learners = Draw(1, job.min_learners);
        break;
      case 4:
        job.priority = Draw(1, 20);
        break;
      case 5:
        job.suspended = !job.suspended;
        break;
      default:
        job.max_learners = job.min_learners + Draw(0, 8);
    }
    RC_LOG() << Format("edit {} of {}: {} to {}, priority {}{}\n", what, job.key.name,
                       job.min_learners, job.max_learners, job.priority,
                       job.suspended ? ", suspended" : "");
    const std::string name = job.key.name;
    const LearnerCount had = before[name];
    const bool larger_maximum = raises && job.max_learners > maximums_[name];
    Settle();
    if (raises && !larger_maximum) {
      // Nobody else may lose anything by it.
      std::map<std::string, LearnerCount> after = world_.Sizes();
      for (const auto& [other, size] : before) {
        if (other != name) RC_ASSERT(after[other] >= size);
      }
    }
    RC_LOG() << Format("  had {}\n", had);
  }

  // In one queue with the policy FairShare: every job with a place has at least what it is entitled
  // to next to the minimums with which the others were admitted. A minimum that was raised counts
  // here as far as it can have been within the share.
  void NobodyIsBelowItsShare() {
    const std::map<std::string, LearnerCount> sizes = world_.Sizes();
    std::vector<Claimant> claimants;
    std::vector<std::string> names;
    for (const JobView& job : world_.snapshot.jobs) {
      const auto size = sizes.find(job.key.name);
      if (size == sizes.end() || size->second == 0) continue;
      const LearnerCount minimum = admitted_.at(job.key.name);
      claimants.push_back({.weight = job.priority,
                           .kept = minimum,
                           .cap = std::max(std::min(job.max_learners, gpus_), minimum),
                           .held = size->second});
      names.push_back(job.key.name);
    }
    const std::vector<std::int64_t> entitled = Apportion(claimants, gpus_);
    for (std::size_t at = 0; at < names.size(); ++at) {
      RC_LOG() << Format("  {} has {}, entitled to {}, admitted with {}\n", names[at],
                         sizes.at(names[at]), entitled[at], admitted_.at(names[at]));
    }
    for (std::size_t at = 0; at < names.size(); ++at) {
      RC_ASSERT(sizes.at(names[at]) >= entitled[at]);
    }
  }

 private:
  JobView& AnyJob() {
    return world_.snapshot
        .jobs[static_cast<std::size_t>(Draw(0, static_cast<int>(world_.snapshot.jobs.size()) - 1))];
  }

  // A later minimum than that of the admission counts at most as far as the job already had GPUs.
  void Settle() {
    const std::map<std::string, LearnerCount> before = world_.Sizes();
    world_.Settle();
    world_.Wait(Seconds{10});
    world_.Settle();
    const std::map<std::string, LearnerCount> after = world_.Sizes();
    for (const JobView& job : world_.snapshot.jobs) {
      const std::string& name = job.key.name;
      maximums_[name] = job.max_learners;
      const auto size = after.find(name);
      if (size == after.end() || size->second == 0) {
        admitted_.erase(name);
        continue;
      }
      const auto known = admitted_.find(name);
      if (known == admitted_.end() || !before.contains(name)) {
        admitted_[name] = job.min_learners;
      } else {
        const LearnerCount raised =
            std::max(known->second, std::min(before.at(name), size->second));
        known->second = std::min(job.min_learners, raised);
      }
    }
  }

  World world_{{}};
  int gpus_ = 0;
  int names_ = 0;
  std::map<std::string, LearnerCount> admitted_;
  std::map<std::string, LearnerCount> maximums_;
};

RC_GTEST_PROP(EditsProperty, NobodyHasLessThanItsShareOfWhatOthersWereAdmittedWith, ()) {
  Edits edits(/*teams=*/false);
  for (int step = 0; step < 12; ++step) {
    edits.Edit();
    edits.NobodyIsBelowItsShare();
  }
}

RC_GTEST_PROP(EditsProperty, ARaisedMinimumCostsOtherTeamsNothing, ()) {
  Edits edits(/*teams=*/true);
  for (int step = 0; step < 12; ++step) edits.Edit();
}

}  // namespace
}  // namespace pliant::planner
