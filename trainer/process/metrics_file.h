#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "trainer/protocol/metrics.h"

namespace pliant {

// metrics.jsonl beside the checkpoints. What cannot be written is logged once and lost: figures are
// not worth stopping a training for.
std::unique_ptr<MetricsSink> NewMetricsFile(std::filesystem::path path);

// `sink` on a thread of its own, in the order of the calls, which never wait for it: the volume may
// hang. Destroying it waits until what was appended is written.
std::unique_ptr<MetricsSink> NewBackgroundMetrics(std::unique_ptr<MetricsSink> sink);

// Shows what goes to `file`, which outlives it, to somebody else as well: each line once. Who takes
// over as rank 0 appends the line before once more, for the file may lack it. `show` may be empty.
std::unique_ptr<MetricsSink> NewShownMetrics(MetricsSink& file,
                                             std::function<void(std::string_view line)> show);

}  // namespace pliant
