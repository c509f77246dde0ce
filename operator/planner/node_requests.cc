#include "operator/planner/node_requests.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "base/earliest.h"
#include "operator/planner/admission_order.h"
#include "operator/planner/entitlement.h"

namespace pliant::planner {
namespace {

// Each learner becomes an object in the API server. Bounds what the jobs of one pool can cost.
constexpr LearnerCount kMaxRequestedLearners = 2048;
// The jobs of one tenant leave most of these to others.
constexpr LearnerCount kMaxOfNamespace = 1024;

class Requesting {
 public:
  Requesting(const Model& model, const Policy& policy, const Sharing& sharing,
             const Assignment& placed)
      : model_(model),
        policy_(policy),
        sharing_(sharing),
        placed_(placed),
        budget_left_(sharing.assignment.budget_left()),
        claims_(ClaimsOnMoreNodes(model, sharing.shares)) {}

  NodeRequests Run() {
    NodeRequests requests{.by_job = std::vector<std::optional<NodeRequest>>(model_.jobs.size())};
    LearnerCount left = kMaxRequestedLearners;
    std::vector<char> is_blocked(model_.queues.size());
    for (const JobIndex job : JobsInTurn(model_, sharing_)) {
      const QueueIndex queue = model_.jobs[job].queue;
      if (is_blocked[queue]) continue;
      std::optional<NodeRequest>& request = requests.by_job[job];
      if (IsDue(job, requests.again_at)) request = Request(job, left);
      if (request) {
        left -= request->learners;
        requests.gpus += model_.GpusOf(job, request->learners);
      } else {
        // It would get the nodes that come for the jobs behind it.
        is_blocked[queue] = WaitsInQueue(sharing_.shares[job].standing);
      }
    }
    return requests;
  }

 private:
  // Whether it has waited long enough; otherwise it will have at `again_at`.
  bool IsDue(JobIndex job, std::optional<WallTime>& again_at) const {
    const JobView& view = *model_.jobs[job].view;
    const WallTime due = view.waiting.since.value_or(view.submitted) + policy_.request_nodes_after;
    if (model_.snapshot->now >= due) return true;
    KeepEarliest(due, again_at);
    return false;
  }

  // Learners like the job's that fit into what is idle and was not requested before.
  std::int64_t& IdleSlots(JobIndex job) {
    const auto [at, is_new] = idle_slots_.try_emplace(sharing_.assignment.FitIndexOf(job));
    if (is_new) {
      for (const NodeIndex node : sharing_.assignment.FitOf(job).nodes) {
        at->second += placed_.SlotsOn(job, node);
      }
    }
    return at->second;
  }

  // Learners of its minimum for which nodes are to be added, at least. An autoscaler adds nodes
  // only for what does not fit into idle GPUs, so those count as lacking; GPUs that running jobs
  // yield once the job starts do not.
  LearnerCount LackingLearners(JobIndex job, std::int64_t idle) const {
    const Job& of = model_.jobs[job];
    const Share& share = sharing_.shares[job];
    const std::int64_t attainable = share.standing == AdmissionState::kTooLarge
                                        ? sharing_.assignment.FitOf(job).slots
                                        : share.attainable_gpus / of.needs().gpus;
    if (attainable >= of.minimum) return 0;
    return static_cast<LearnerCount>(of.minimum - std::max<std::int64_t>(attainable - idle, 0));
  }

  // Whether its queue may have its minimum once nodes for `more` learners are there, and those for
  // the previous requests.
  bool WouldBeAdmitted(JobIndex index, std::int64_t more) const {
    const Job& job = model_.jobs[index];
    const Claimant& claimant = claims_.claimants[job.queue];
    const std::int64_t seats = claims_.seats + more * job.needs().gpus;
    const std::int64_t entitled = Apportion(claims_.claimants, seats)[job.queue];
    const std::int64_t most =
        std::min(std::max(entitled, claimant.floor), model_.queues[job.queue].limit_gpus());
    return claimant.kept + model_.GpusOf(index, job.minimum) <= most;
  }

  // Requests up to the minimum of the job, because it may need more than it lacks, for the minimums
  // of others. nullopt: it lacks none, or would not be admitted, or the nodes that it has are idle
  // and kept for others.
  std::optional<NodeRequest> Request(JobIndex index, LearnerCount left) {
    const Job& job = model_.jobs[index];
    if (job.demand < job.minimum || !IsInBudget(job)) return std::nullopt;
    std::int64_t& idle = IdleSlots(index);
    const LearnerCount least = LackingLearners(index, idle);
    if (least == 0) return std::nullopt;
    const auto sizes = std::views::iota(least, std::max(job.minimum, least) + 1);
    const auto enough = std::ranges::partition_point(sizes, [&](LearnerCount learners) {
      return learners <= idle || !WouldBeAdmitted(index, learners - idle);
    });
    if (enough == sizes.end() || *enough > left) return std::nullopt;
    if (of_namespace_[job.view->key.name_space] + *enough > kMaxOfNamespace) return std::nullopt;
    claims_.seats += (*enough - idle) * job.needs().gpus;
    claims_.claimants[job.queue].kept += model_.GpusOf(index, job.minimum);
    if (job.budget) budget_left_[*job.budget] -= model_.GpusOf(index, job.minimum);
    of_namespace_[job.view->key.name_space] += *enough;
    idle = 0;
    return NodeRequest{.learners = *enough, .gpu_product = ProductFor(index, *enough)};
  }

  bool IsInBudget(const Job& job) const {
    return !job.budget || job.minimum * job.needs().gpus <= budget_left_[*job.budget];
  }

  // A bitwise job that keeps some of the present GPUs can use nodes of their product only, as can
  // one that has begun.
  std::string ProductFor(JobIndex index, LearnerCount learners) const {
    const Job& job = model_.jobs[index];
    const bool is_bitwise = job.view->training.reproducibility == Reproducibility::kBitwise;
    if (!is_bitwise || !job.view->training.gpu_product.empty())
      return job.view->training.gpu_product;
    const std::vector<NodeIndex>& nodes = sharing_.assignment.FitOf(index).nodes;
    if (nodes.empty()) return "";
    // Requests would go to idle GPUs of any product, and make no node come.
    const bool are_several = sharing_.assignment.FitOf(index).gpus.has_value();
    if (learners >= job.minimum && !are_several) return "";
    return std::string(model_.nodes[nodes.front()].gpus.product);
  }

  const Model& model_;
  const Policy& policy_;
  const Sharing& sharing_;
  const Assignment& placed_;
  std::vector<std::int64_t> budget_left_;                  // GPUs, without requested ones
  std::map<std::string_view, LearnerCount> of_namespace_;  // requested learners
  QueueClaims claims_;                      // with the requested nodes and their jobs
  std::map<int, std::int64_t> idle_slots_;  // by fit
};

}  // namespace

NodeRequests RequestNodes(const Model& model, const Policy& policy, const Sharing& sharing,
                          const Assignment& placed) {
  if (model.pool.requests_nodes) return Requesting(model, policy, sharing, placed).Run();
  return {};
}

}  // namespace pliant::planner
