#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "operator/planner/reasons.h"

// Parts of the sentences that explain a job's size.
namespace pliant::planner {

// A sentence is built for every job in every plan, and std::format is several times slower.
inline void Append(std::string& text, std::string_view part) { text += part; }
inline void Append(std::string& text, std::integral auto number) {
  char digits[24];
  text.append(digits, std::to_chars(std::begin(digits), std::end(digits), number).ptr);
}

// "2 GPUs (minLearners 2)"
struct MinimumNeeds {
  const Job& job;
};
void Append(std::string& text, const MinimumNeeds& minimum);

template <typename... Parts>
std::string Sentence(const Parts&... parts) {
  std::string text;
  text.reserve(128);
  (Append(text, parts), ...);
  return text;
}

std::string UtcTime(WallTime time);
std::string_view NameOfQueue(const ReasonFacts& facts);
// "3 of 8 GPUs: "
std::string Gpus(const ReasonFacts& facts);
// "the ResourceQuotas of namespace team-a leave its jobs 4 GPUs"
std::string Budget(const ReasonFacts& facts);
// ", all with GPUs of product NVIDIA-L4 and driver 580.95.05, because it is bitwise"; "" if it may
// use any GPUs
std::string OneKind(const ReasonFacts& facts);
// "queue research may hold 8 GPUs (spec.limit)"
std::string LimitOfQueue(const ReasonFacts& facts);
// " (pod bert-3: 0/2 nodes are available)"; "" if it is not known
std::string CauseOf(const DemandCap& cap);

}  // namespace pliant::planner
