#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace pliant {

// While it lives, its thread computes with floats as IEEE 754 has it: rounded to nearest, and small
// numbers are not taken for zero. A program may have it otherwise for its own threads
// (torch.set_flush_denormal, a library compiled with -ffast-math), and threads inherit it; but sums
// must have the same bits on whichever thread and whichever learner they are made. What is made
// within is to be called, not inlined: compilers do not know that this changes their operations.
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
  static constexpr unsigned kDefault = 0x1F80;  // of MXCSR: every exception is masked, no more
  const unsigned before_;
#else
  std::fenv_t before_;
#endif
};

}  // namespace pliant
