#include "operator/controller/model/queue_book.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/format.h"
#include "operator/controller/model/job_view.h"

namespace pliant::controller {
namespace {

const api::TrainingQueueSpec kBuiltInQueueSpec;
const api::GpuPoolSpec kBuiltInPoolSpec;

// Collects sentences on what was reduced.
class Limits {
 public:
  void Apply(const char* field, std::int64_t allowed, std::int64_t asked,
             const std::string& whose) {
    if (asked <= allowed) return;
    text_ += Format("{}{} counts as {}, not as {}: more is not allowed in {}",
                    text_.empty() ? "" : "; ", field, allowed, asked, whose);
  }
  void Apply(const char* field, std::chrono::seconds allowed, std::chrono::seconds& value,
             const std::string& whose) {
    Apply(field, allowed.count(), value.count(), whose);
    value = std::min(value, allowed);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// The fields of a spec that its queue and pool may reduce.
struct Effective {
  int priority = 0;
  int max_learners = 0;
  api::ResizeSpec resize;
  std::string limited;
  std::string gpu_resource;

  bool IsIn(const api::JobSpec& spec) const {
    return priority == spec.priority && max_learners == spec.elastic.max_learners &&
           resize == spec.resize && limited == spec.limited && gpu_resource == spec.gpu_resource;
  }
};

Effective EffectiveOf(const api::ElasticTrainingJob& job, const api::TrainingQueueSpec& queue,
                      const api::PoolBounds& bounds) {
  const api::JobSpec& spec = job.spec;
  Limits limits;
  Effective effective{.max_learners = spec.elastic.max_learners, .resize = spec.resize};
  const int asked = spec.priority_asked.value_or(queue.priority.fallback);
  limits.Apply("priority", queue.priority.max, asked, "queue " + spec.queue);
  effective.priority = std::min(asked, queue.priority.max);

  const std::string pool = "pool " + queue.pool;
  api::ResizeSpec& resize = effective.resize;
  // There, what a job holds counts more than what it would get, so that learners move seldom. A job
  // in its cooldown would only make its neighbors take what it soon takes back.
  const bool shares_by_speed = queue.policy == api::QueuePolicy::kThroughput;
  if (shares_by_speed && !spec.cooldown_asked) resize.cooldown = std::chrono::seconds(0);
  const api::ResizeSpec& max = bounds.max_resize;
  limits.Apply("resize.gracePeriodSeconds", max.grace_period, resize.grace_period, pool);
  limits.Apply("resize.minRuntimeSeconds", max.min_runtime, resize.min_runtime, pool);
  limits.Apply("resize.cooldownSeconds", max.cooldown, resize.cooldown, pool);
  if (bounds.max_gpus_per_job) {
    const int learners =
        std::max(*bounds.max_gpus_per_job / spec.elastic.gpus_per_learner, CountedMinimum(job));
    limits.Apply("elastic.maxLearners", learners, effective.max_learners, pool);
    effective.max_learners = std::min(effective.max_learners, learners);
  }
  effective.limited = limits.text();
  return effective;
}

planner::QueueView ViewOf(const std::string& name, const api::TrainingQueueSpec& spec) {
  planner::QueueView view{.name = name,
                          .pool = spec.pool,
                          .weight = spec.weight,
                          .guaranteed_gpus = spec.guaranteed,
                          .policy = spec.policy,
                          .strict = spec.queueing == api::Queueing::kStrict,
                          .evicts = spec.reclaim == api::Reclaim::kEvict,
                          .half_life = spec.service_half_life,
                          .stop = spec.stop,
                          .favors_short_jobs = spec.bias == api::Bias::kShortJobs};
  if (spec.limit) view.limit_gpus = *spec.limit;
  if (spec.lending_limit) view.lending_limit_gpus = *spec.lending_limit;
  return view;
}

// Keeps the object, and its spec if that is understood. Returns whether the spec was edited.
template <typename T, typename Spec>
bool Keep(const std::string& name, std::shared_ptr<const T> object,
          std::map<std::string, std::shared_ptr<const T>>& objects,
          std::map<std::string, Spec>& specs) {
  if (object == nullptr) {
    objects.erase(name);
    return specs.erase(name) > 0;
  }
  const auto known = objects.find(name);
  const bool is_new = known == objects.end() || known->second->meta.uid != object->meta.uid;
  // An edit without effect is observed, too, and one that is not understood is reported.
  const bool is_edited = is_new || known->second->meta.generation != object->meta.generation ||
                         known->second->unreadable != object->unreadable;
  objects[name] = object;
  if (is_new) specs.erase(name);
  if (!object->unreadable.empty()) return is_edited;
  const bool same = specs.contains(name) && specs.at(name) == object->spec;
  if (!same) specs[name] = object->spec;
  return is_edited || !same;
}

}  // namespace

bool QueueBook::SetQueue(const std::string& name, std::shared_ptr<const api::TrainingQueue> queue) {
  if (!Keep(name, std::move(queue), queues_, queue_specs_)) return false;
  ++version_;
  return true;
}

bool QueueBook::SetPool(const std::string& name, std::shared_ptr<const api::GpuPool> pool) {
  if (!Keep(name, std::move(pool), pools_, pool_specs_)) return false;
  SortPools();
  ++version_;
  return true;
}

bool QueueBook::SetNamespace(const std::string& name,
                             std::shared_ptr<const api::Namespace> name_space) {
  const auto known = namespace_labels_.find(name);
  if (name_space == nullptr) {
    if (known == namespace_labels_.end()) return false;
    namespace_labels_.erase(known);
  } else {
    if (known != namespace_labels_.end() && known->second == name_space->meta.labels) return false;
    namespace_labels_[name] = name_space->meta.labels;
  }
  ++version_;
  return true;
}

void QueueBook::SortPools() {
  pools_by_age_.clear();
  for (const auto& [name, spec] : pool_specs_) pools_by_age_.push_back(name);
  std::ranges::sort(pools_by_age_, {}, [this](const std::string& name) {
    return std::tuple(pools_.at(name)->meta.created, name);
  });
}

const api::TrainingQueueSpec* QueueBook::FindQueue(const std::string& name) const {
  const auto found = queue_specs_.find(name);
  if (found != queue_specs_.end()) return &found->second;
  return name == planner::kBuiltInQueue ? &kBuiltInQueueSpec : nullptr;
}

const api::GpuPoolSpec* QueueBook::FindPool(const std::string& name) const {
  const auto found = pool_specs_.find(name);
  if (found != pool_specs_.end()) return &found->second;
  return name == planner::kBuiltInPool ? &kBuiltInPoolSpec : nullptr;
}

std::string QueueBook::WhyRefused(const api::ElasticTrainingJob& job,
                                  const api::TrainingQueueSpec* queue) const {
  const std::string& name = job.spec.queue;
  if (queue == nullptr) {
    // The planner says so of a queue that it does not have.
    return rights_ == QueueRights::kAll
               ? ""
               : Format(
                     "the operator manages single namespaces and reads no TrainingQueues: "
                     "spec.queue must be {}",
                     planner::kBuiltInQueue);
  }
  const auto labels = namespace_labels_.find(job.meta.name_space);
  static const std::map<std::string, std::string> none;
  if (!queue->namespace_selector.Matches(labels == namespace_labels_.end() ? none
                                                                           : labels->second)) {
    return Format("namespace {} may not use queue {}: its namespaceSelector does not match",
                  job.meta.name_space, name);
  }
  const api::GpuPoolSpec* pool = FindPool(queue->pool);
  if (pool == nullptr || !pool->bounds.max_gpus_per_job) return "";
  const int gpus = job.spec.elastic.min_learners * job.spec.elastic.gpus_per_learner;
  if (gpus <= *pool->bounds.max_gpus_per_job) return "";
  return Format(
      "elastic.minLearners x gpusPerLearner is {} GPUs: pool {} allows a job {} "
      "(bounds.gpusPerJob)",
      gpus, queue->pool, *pool->bounds.max_gpus_per_job);
}

JobInQueue QueueBook::Apply(std::shared_ptr<const api::ElasticTrainingJob> job,
                            const std::string& pool_before) const {
  const api::TrainingQueueSpec* queue = FindQueue(job->spec.queue);
  JobInQueue result{.membership = {.pool = pool_before, .refusal = WhyRefused(*job, queue)}};
  if (queue != nullptr) {
    result.membership.pool = queue->pool;
    result.membership.half_life = queue->service_half_life;
  }
  const api::TrainingQueueSpec& rules = queue != nullptr ? *queue : kBuiltInQueueSpec;
  const api::GpuPoolSpec* pool = FindPool(rules.pool);
  const api::PoolBounds& bounds = (pool != nullptr ? *pool : kBuiltInPoolSpec).bounds;
  Effective effective = EffectiveOf(*job, rules, bounds);
  effective.gpu_resource = ResourceOf(result.membership.pool);
  if (effective.IsIn(job->spec)) {
    result.job = std::move(job);
    return result;
  }
  auto changed = std::make_shared<api::ElasticTrainingJob>(*job);
  changed->spec.priority = effective.priority;
  changed->spec.elastic.max_learners = effective.max_learners;
  changed->spec.resize = effective.resize;
  changed->spec.limited = std::move(effective.limited);
  changed->spec.gpu_resource = std::move(effective.gpu_resource);
  result.job = std::move(changed);
  return result;
}

std::string QueueBook::PoolOf(const std::map<std::string, std::string>& labels) const {
  for (const std::string& name : pools_by_age_) {
    const api::LabelSelector& selector = pool_specs_.at(name).node_selector;
    if (!selector.empty() && selector.Matches(labels)) return name;
  }
  // A pool without a selector has the nodes that are in no other; so has the built-in one.
  for (const std::string& name : pools_by_age_) {
    if (pool_specs_.at(name).node_selector.empty()) return name;
  }
  const std::string built_in(planner::kBuiltInPool);
  return pool_specs_.contains(built_in) ? "" : built_in;
}

std::string QueueBook::ResourceOf(const std::string& pool) const {
  const api::GpuPoolSpec* spec = FindPool(pool);
  return spec == nullptr || spec->resource_name == gpu_resource_ ? "" : spec->resource_name;
}

NodeTerms QueueBook::TermsOfPool(const std::string& pool) const {
  const api::GpuPoolSpec* spec = FindPool(pool);
  NodeTerms terms = NodesIn(spec != nullptr ? spec->node_selector : api::LabelSelector{});
  const bool has_rest = terms.empty();
  for (const std::string& other : pools_by_age_) {
    if (other == pool) {
      if (has_rest) continue;
      break;  // the nodes of younger pools belong to this one
    }
    terms = BothHold(terms, NodesNotIn(pool_specs_.at(other).node_selector));
  }
  return terms;
}

bool QueueBook::IsContested(const std::string& pool,
                            const std::map<std::string, std::string>& labels) const {
  const auto spec = pool_specs_.find(pool);
  if (spec == pool_specs_.end()) return false;
  const api::LabelSelector& selector = spec->second.node_selector;
  if (!selector.empty()) return selector.Matches(labels) && PoolOf(labels) != pool;
  const std::string owner = PoolOf(labels);
  const auto of_owner = pool_specs_.find(owner);
  return of_owner != pool_specs_.end() && owner != pool && of_owner->second.node_selector.empty();
}

std::vector<planner::QueueView> QueueBook::QueueViews() const {
  std::vector<planner::QueueView> views;
  for (const auto& [name, spec] : queue_specs_) views.push_back(ViewOf(name, spec));
  if (!queue_specs_.contains(std::string(planner::kBuiltInQueue))) {
    views.push_back(ViewOf(std::string(planner::kBuiltInQueue), kBuiltInQueueSpec));
  }
  return views;
}

std::vector<planner::PoolView> QueueBook::PoolViews() const {
  std::vector<planner::PoolView> views;
  for (const auto& [name, spec] : pool_specs_) {
    views.push_back({.name = name,
                     .resource = ResourceOf(name),
                     .reserved_gpus = spec.reserved_gpus,
                     .topology_keys = spec.topology_keys,
                     .requests_nodes = spec.scale_up == api::ScaleUp::kMinimum,
                     .yields = spec.yields_to_pending});
  }
  if (!pool_specs_.contains(std::string(planner::kBuiltInPool))) views.push_back({});
  return views;
}

}  // namespace pliant::controller
