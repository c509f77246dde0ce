#pragma once

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
  // `gpus_of_node`: GPUs of the largest node of its pool.
  void Observe(JobView& view, const api::FrozenTraining& training, std::int64_t gpus_of_node);

  std::size_t kinds() const { return kinds_.size(); }

  // A membership counts after this time, and this many kinds of jobs are known per namespace.
  static constexpr double kSteadySeconds = 10;
  static constexpr std::size_t kMaxKindsOfNamespace = 64;
  // Sizes up to this many times the largest one that was tried are offered: beyond, a fitted speed
  // is too uncertain.
  static constexpr int kMaxTimesBeyond = 2;

 private:
  struct KindKey {
    std::string name_space;
    std::string gpu_product;
    std::string template_hash;
    std::int64_t batch = 0;
    int shards = 0;
    bool bitwise = true;
    int gpus_per_learner = 1;
    auto operator<=>(const KindKey&) const = default;
  };
  struct Kind {
    speed::StepTable table;
    std::optional<speed::StepModel> model;
    std::uint64_t version = 0;  // of the model; differs between all models of the book
    std::uint64_t used = 0;     // when it was last looked at
  };

  Kind& KindOf(const JobView& view, const api::FrozenTraining& training);
  void Learn(const speed::MeasuredStep& step, Kind& kind);

  std::map<KindKey, Kind> kinds_;
  std::uint64_t clock_ = 0;
};

}  // namespace pliant::controller
