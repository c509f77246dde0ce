#pragma once

#include <concepts>
#include <type_traits>

namespace pliant {

// The quotient of numbers that are not negative, rounded up. `divisor` is not 0.
template <std::integral T>
constexpr T DivideUp(T number, std::type_identity_t<T> divisor) {
  return number / divisor + (number % divisor != 0 ? 1 : 0);
}

}  // namespace pliant
