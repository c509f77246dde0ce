#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "trainer/protocol/metrics.h"

namespace pliant {

// metrics.jsonl next to the checkpoints. Lines that cannot be written are lost, and that is logged
// once: metrics are not worth stopping a training for.
std::unique_ptr<MetricsSink> NewMetricsFile(std::filesystem::path path);

// Calls `sink` on a thread of its own, in the order of the calls. These never wait for it: the
// volume may hang. The destructor waits until what was appended is written.
std::unique_ptr<MetricsSink> NewBackgroundMetrics(std::unique_ptr<MetricsSink> sink);

// Passes each line that goes to `file`, which outlives it, to `show` as well, once. A learner that
// becomes rank 0 appends the last line again, because the file may lack it. `show` may be empty.
std::unique_ptr<MetricsSink> NewShownMetrics(MetricsSink& file,
                                             std::function<void(std::string_view line)> show);

}  // namespace pliant
