// For test programs declared to have one thread (pliant_test ... ONE_THREAD): replaces a function
// of the C library, so that a second thread ends the program. These programs are not run under
// ThreadSanitizer.

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
