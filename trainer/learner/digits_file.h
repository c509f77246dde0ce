#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/learner/samples.h"

namespace pliant::learner {

inline constexpr int kDigitClasses = 10;
inline constexpr int kDigitSide = 8;
inline constexpr int kDigitBrightest = 16;

// One image a line: 64 whole numbers 0..16, then the digit 0..9. `origin` names the text in errors:
// "origin:line: what is wrong".
Result<Samples> ParseDigits(std::string_view text, const std::string& origin);

}  // namespace pliant::learner
