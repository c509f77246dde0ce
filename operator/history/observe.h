#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/api/elastic_training_job.h"
#include "operator/api/gpu_pool.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/api/training_queue.h"
#include "operator/controller/model/queue_book.h"
#include "operator/history/values.h"
#include "operator/kube/store.h"

namespace pliant::history {

struct Stores {
  kube::Store<api::ElasticTrainingJob>& jobs;
  kube::Store<api::Pod>& pods;
  kube::Store<api::Node>& nodes;
  kube::Store<api::TrainingQueue>& queues;
  kube::Store<api::GpuPool>& pools;

  bool synced() const {
    return jobs.synced() && pods.synced() && nodes.synced() && queues.synced() && pools.synced();
  }
};

struct Observation {
  Subject subject;
  std::optional<Values> values;  // nullopt: it is gone
  bool operator==(const Observation&) const = default;
};

// The statistics of a job are looked at once in this time, at a moment that depends on its name, so
// that those of all jobs do not come at once.
inline constexpr int kStatisticsSeconds = 30;

// Finds what changed in the stores, which every replica has: so each records the same history.
// Control thread.
class Observer {
 public:
  // Construct it before the first object enters the stores. `book` follows the same stores. Both
  // outlive this.
  Observer(Stores stores, const controller::QueueBook& book);

  // The subjects that may have changed since the last call, in order; all when the stores are
  // synced for the first time, and none before that.
  std::vector<Observation> Take(WallTime now);

 private:
  // nullopt for a job that the store lacks.
  std::optional<Values> RecordOfJob(const kube::NamespacedName& key) const;
  void SeeJob(const kube::Store<api::ElasticTrainingJob>::Change& change);
  void SeePod(const kube::Store<api::Pod>::Change& change);
  void LookAtNodesOf(const kube::NamespacedName& job);
  void LookAtAllNodes();
  void LookAtStatistics(WallTime now);
  void TakeNode(const std::string& node, std::vector<Observation>& taken);

  const Stores stores_;
  const controller::QueueBook& book_;
  kube::Store<api::Pod>::IndexId by_node_;
  kube::Store<api::Pod>::IndexId by_job_;
  std::uint64_t book_version_ = 0;
  std::set<kube::NamespacedName> jobs_;
  std::set<std::string> nodes_;
  std::set<std::string> queues_;
  std::set<std::string> pools_;
  std::array<std::set<kube::NamespacedName>, kStatisticsSeconds> statistics_;
  std::optional<std::int64_t> second_;                          // of the last look at statistics
  std::map<std::string, std::set<kube::NamespacedName>> held_;  // by node: jobs last seen there
};

}  // namespace pliant::history
