#pragma once

#include <filesystem>
#include <memory>

#include "trainer/runtime/metrics.h"

namespace pliant {

// metrics.jsonl beside the checkpoints. What cannot be written is logged once and lost: figures are
// not worth stopping a training for.
std::unique_ptr<MetricsSink> NewMetricsFile(std::filesystem::path path);

}  // namespace pliant
