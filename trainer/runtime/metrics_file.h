#pragma once

#include <filesystem>
#include <memory>

#include "trainer/runtime/metrics.h"

namespace pliant {

// metrics.jsonl beside the checkpoints. What cannot be written is logged once and lost: figures are
// not worth stopping a training for.
std::unique_ptr<MetricsSink> NewMetricsFile(std::filesystem::path path);

// `sink` on a thread of its own, in the order of the calls, which never wait for it: the volume may
// hang. Destroying it waits until what was appended is written.
std::unique_ptr<MetricsSink> NewBackgroundMetrics(std::unique_ptr<MetricsSink> sink);

}  // namespace pliant
