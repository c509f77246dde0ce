#pragma once

#include <cmath>

namespace pliant {

// The number with so many significant digits, for values that are measured and shown; 0 if it is
// not positive.
inline double WithDigits(double number, int digits) {
  if (!(number > 0)) return 0;
  const double exponent = digits - 1 - std::floor(std::log10(number));
  const double power = std::pow(10, std::abs(exponent));
  // To divide by a power of ten is exact to the last digit, to multiply by a fraction is not.
  return exponent < 0 ? std::round(number / power) * power : std::round(number * power) / power;
}

}  // namespace pliant
