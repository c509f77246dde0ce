// In test programs that are said to have one thread (pliant_test ... ONE_THREAD): takes the C
// library's place, so that a second one ends the program. ThreadSanitizer is not run on them.

#include <cstdio>
#include <cstdlib>

#include <pthread.h>

extern "C" int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  std::fputs(
      "this program is said to have one thread, and makes another: take ONE_THREAD from its "
      "pliant_test\n",
      stderr);
  std::abort();
}
