#pragma once

#include <string_view>
#include <vector>

#include "operator/planner/plan.h"

namespace pliant::planner {

// The words of an enumeration that has no gaps.
template <typename Code>
std::vector<std::string_view> AllWords() {
  std::vector<std::string_view> words;
  for (int code = 0; ToString(static_cast<Code>(code)) != "Unknown"; ++code) {
    words.push_back(ToString(static_cast<Code>(code)));
  }
  return words;
}

inline std::vector<std::string_view> AllReasons() { return AllWords<ReasonCode>(); }
inline std::vector<std::string_view> AllGrowthLimits() { return AllWords<GrowthLimit>(); }
inline std::vector<std::string_view> AllQueueStates() { return AllWords<QueueState>(); }

}  // namespace pliant::planner
