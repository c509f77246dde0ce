#pragma once

#include <cstdint>
#include <string>

#include "operator/api/elastic_training_job.h"
#include "operator/api/gpu_pool.h"
#include "operator/api/node.h"
#include "operator/api/training_queue.h"
#include "operator/history/values.h"

namespace pliant::history {

// Longer sentences are cut: anybody who may create a job can make its reason long.
inline constexpr std::size_t kMaxTextBytes = 256;
// A kubelet may say anything: sums stay numbers that JavaScript can hold.
inline constexpr std::int64_t kMaxGpusOfNode = 1024;

// The values that the timeline keeps of each object.
Values RecordOf(const api::ElasticTrainingJob& job);
Values RecordOf(const api::TrainingQueue& queue);
Values RecordOf(const api::GpuPool& pool);
// `pool`: that of the node; "": none. `gpus` and `used`: as this pool counts them; `used` by all
// pods.
Values RecordOf(const api::Node& node, const std::string& pool, std::int64_t gpus,
                std::int64_t used);
Values RecordOfHeld(std::int64_t gpus);

// The record of a job without what changes at every write of its status.
Values WithoutStatistics(Values job);

}  // namespace pliant::history
