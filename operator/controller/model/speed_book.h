#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/controller/model/job_view.h"
#include "operator/speed/step_model.h"
#include "operator/speed/step_table.h"

namespace pliant::controller {

// The speeds of jobs, as their coordinators measured them. Jobs of one namespace that have equal
// templates and equal trainings share what is known: the second one begins with the curve of the
// first. Across namespaces nothing is shared: a tenant's program may report anything.
class SpeedBook {
 public:
  // Learns from the report of the job's coordinator, and, when it sees the job first, from its
  // status. Then brings JobSoftState::speed up to date. `training`: as frozen, or as it would be.
  // `gpus_of_node`: GPUs of the largest node of its pool; 0: it has none, and the curve stays.
  void Observe(JobView& view, const api::FrozenTraining& training, std::int64_t gpus_of_node,
               WallTime now);

  std::size_t kinds() const { return kinds_.size(); }

  // A membership counts after this time.
  static constexpr double kSteadySeconds = 10;
  // With more kinds in a namespace, one that no job has used for kUnused is dropped for a new one.
  // Kinds that nobody has used for kForgotten are dropped anyway.
  static constexpr std::size_t kMaxKindsOfNamespace = 64;
  static constexpr std::chrono::minutes kUnused{1};
  static constexpr std::chrono::hours kForgotten{1};
  // Sizes up to this many times the largest one that was tried are offered: beyond, a fitted speed
  // is too uncertain.
  static constexpr int kMaxTimesBeyond = 2;

 private:
  struct KindKey {
    std::string name_space;
    std::string template_hash;
    std::int64_t batch = 0;
    int shards = 0;
    bool bitwise = true;
    int gpus_per_learner = 1;
    std::string gpu_product;  // last: kinds that differ in it alone are neighbors
    auto operator<=>(const KindKey&) const = default;
  };
  struct Kind {
    speed::StepTable table;
    std::optional<speed::StepModel> model;
    std::uint64_t version = 0;  // of the model; differs between all models of the book
    WallTime used;
  };

  static KindKey KeyOf(const JobView& view, const api::FrozenTraining& training);
  Kind& KindOf(const KindKey& key, WallTime now);
  void DropUnused(const std::string& name_space, WallTime now);
  // Before a job has trained, its GPU product is not known: then a kind that differs in the product
  // only, the one that was used last. Null: nothing is known.
  const Kind* KnownKind(const KindKey& key, const Kind& own) const;
  void Learn(const speed::MeasuredStep& step, Kind& kind);
  void MakeCurve(const Kind& kind, const api::FrozenTraining& training, int gpus,
                 KnownSpeed& known) const;

  std::map<KindKey, Kind> kinds_;
  std::uint64_t versions_ = 0;
  WallTime forgot_;  // when kinds were last dropped because of their age
};

}  // namespace pliant::controller
