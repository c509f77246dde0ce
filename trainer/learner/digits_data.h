#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pliant::learner {

// Samples in the order of the file, which the sampler's indices refer to.
struct Samples {
  std::vector<float> pixels;  // 64 a sample, row by row, scaled from 0..16 to -1..1
  std::vector<std::int64_t> labels;

  std::uint64_t count() const { return labels.size(); }
  bool operator==(const Samples&) const = default;
};

// One image a line: 64 whole numbers 0..16, then the digit 0..9. `origin` names the text in errors,
// which are "origin:line: what is wrong".
Result<Samples> ParseDigits(std::string_view text, const std::string& origin);
Result<Samples> ReadDigits(const std::filesystem::path& path);

}  // namespace pliant::learner
