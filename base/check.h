#pragma once

#include <string_view>

namespace pliant {

// Prints the condition, the reason and the place, then aborts. For bugs only: an error that the
// environment can cause is a Result.
[[noreturn]] void CheckFailed(const char* condition, std::string_view why, const char* file,
                              int line);

}  // namespace pliant

#define CHECK(condition, why)                                       \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      ::pliant::CheckFailed(#condition, (why), __FILE__, __LINE__); \
  } while (false)
