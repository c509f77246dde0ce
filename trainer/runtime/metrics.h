#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "trainer/data/schedule.h"
#include "trainer/membership/messages.h"
#include "trainer/runtime/program.h"

namespace pliant {

// Where metrics.jsonl goes. Called by rank 0 only.
class MetricsSink {
 public:
  virtual ~MetricsSink() = default;
  virtual void Append(std::string_view line) = 0;  // one JSON object, without the line's end
  virtual void CutFrom(Tick tick) = 0;             // after a restore: lines of `tick` and later go
};

}  // namespace pliant
