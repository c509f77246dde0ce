#pragma once

#include <type_traits>

namespace pliant {

// Whether two types are passed in the same way: NVIDIA's headers have enumerations and pointers to
// structs, where the library has integers and void*.
template <typename A, typename B>
constexpr bool kSame = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;

template <typename A, typename B>
struct Functions;
template <typename A, typename... As, typename B, typename... Bs>
struct Functions<A (*)(As...), B (*)(Bs...)> {
  static constexpr bool kAlike = [] {
    if constexpr (sizeof...(As) == sizeof...(Bs)) {
      return kSame<A, B> && (kSame<As, Bs> && ...);
    } else {
      return false;
    }
  }();
};

}  // namespace pliant
