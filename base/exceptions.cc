#include "base/exceptions.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

namespace pliant {
namespace {

Error ErrorOf(ErrorCode code, const std::exception& error) noexcept {
  try {
    return {code, error.what()};
  } catch (...) {
    return {code, "out of memory"};  // short enough to need no allocation
  }
}

}  // namespace

Error CaughtError() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kUnavailable, "out of memory"};
  } catch (const std::system_error& error) {
    return ErrorOf(ErrorCode::kUnavailable, error);
  } catch (const std::exception& error) {
    return ErrorOf(ErrorCode::kInternal, error);
  } catch (...) {
    return {ErrorCode::kInternal, "unknown error"};
  }
}

void EndProcess(const char* thread, const Error& error) noexcept {
  std::fprintf(stderr, "pliant: the thread of %s ends the process: %s\n", thread,
               error.message.c_str());
  std::fflush(stderr);
  std::_Exit(EXIT_FAILURE);
}

}  // namespace pliant
