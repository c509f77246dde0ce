#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace pliant {

void CheckFailed(const char* condition, std::string_view why, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s (%.*s)\n", file, line, condition,
               static_cast<int>(why.size()), why.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace pliant
