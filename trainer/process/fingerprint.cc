#include "trainer/process/fingerprint.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <vector>

namespace pliant {
namespace {

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// The value of the first line "name : value".
std::string_view ValueOf(std::string_view cpuinfo, std::string_view name) {
  for (const auto part : cpuinfo | std::views::split('\n')) {
    const std::string_view line(part);
    const std::size_t colon = line.find(':');
    if (colon != line.npos && Trim(line.substr(0, colon)) == name) {
      return Trim(line.substr(colon + 1));
    }
  }
  return {};
}

bool IsVectorFlag(std::string_view flag) {
  constexpr std::array<std::string_view, 6> kPrefixes = {"avx",  "fma",  "amx",
                                                         "sse4", "f16c", "asimd"};
  return flag == "sve" || flag == "sve2" ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return flag.starts_with(prefix); });
}

}  // namespace

std::string DescribeCpu(std::string_view cpuinfo) {
  std::string text;
  const auto add = [&text](std::string_view word) {
    if (word.empty()) return;
    if (!text.empty()) text += ' ';
    text += word;
  };
  // x86 names vendor_id, cpu family and model; ARM CPU implementer and CPU part.
  for (const char* name : {"vendor_id", "cpu family", "model", "CPU implementer", "CPU part"}) {
    add(ValueOf(cpuinfo, name));
  }
  std::string_view flags = ValueOf(cpuinfo, "flags");
  if (flags.empty()) flags = ValueOf(cpuinfo, "Features");
  std::vector<std::string_view> vector_flags;
  for (const auto part : flags | std::views::split(' ')) {
    if (IsVectorFlag(std::string_view(part))) vector_flags.emplace_back(part);
  }
  std::ranges::sort(vector_flags);
  for (const std::string_view flag : vector_flags) add(flag);
  return text.empty() ? "unknown" : text;
}

Fingerprint MakeFingerprint(const LearnerEnvironment& environment, const std::string& framework,
                            const ProgramInfo& info, std::string_view cpuinfo) {
  Fingerprint fingerprint;
  fingerprint["framework"] = framework;
  // A learner with another data set, for example one mounted from elsewhere, would corrupt every
  // step, and all learners would hold the same wrong state.
  fingerprint["trainSamples"] = std::to_string(info.train_samples);
  fingerprint["testSamples"] = std::to_string(info.test_samples);
  fingerprint["epochs"] = std::to_string(info.epochs);
  if (info.max_steps != 0) fingerprint["maxSteps"] = std::to_string(info.max_steps);
  if (info.evaluate_every != 0) {
    fingerprint["evaluateEvery"] = std::to_string(info.evaluate_every);
  }
  fingerprint["gradientElements"] = std::to_string(info.gradient_elements);
  // Not the name: learners may have the same base at different paths.
  if (!info.base.sha256.empty()) fingerprint["base"] = info.base.sha256;
  if (environment.max_batch_size) {
    fingerprint["maxBatchSize"] = std::to_string(*environment.max_batch_size);
  }
  // Frames name buckets by number, so their sizes must be equal.
  fingerprint["bucketBytes"] = std::to_string(BucketSizesOf(environment).rest * sizeof(float));
  // Equal bits are promised on one CPU model; equality up to rounding on any.
  if (environment.reproducibility == Reproducibility::kBitwise)
    fingerprint["cpu"] = DescribeCpu(cpuinfo);
  return fingerprint;
}

}  // namespace pliant
