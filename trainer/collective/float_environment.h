#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace pliant {

// While it exists, its thread computes with floats as IEEE 754 specifies: rounded to nearest, and
// small numbers are not flushed to zero. A program may set this differently for its own threads
// (torch.set_flush_denormal, a library compiled with -ffast-math), and threads inherit it; but sums
// must have the same bits on every thread and every learner. Code in its scope must call the
// arithmetic as functions that are not inlined: compilers do not know that this class changes their
// operations.
class FloatEnvironment {
 public:
#if defined(__x86_64__)
  FloatEnvironment() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FloatEnvironment() { _mm_setcsr(before_); }
#else
  FloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&before_); }
#endif
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = 0x1F80;  // MXCSR: all exceptions masked, nothing else
  const unsigned before_;
#else
  std::fenv_t before_;
#endif
};

}  // namespace pliant
