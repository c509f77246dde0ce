#pragma once

#include <expected>
#include <type_traits>

#include "base/result.h"

namespace pliant {

// The exception that is being handled, as an error: kUnavailable where the machine refused (memory,
// a file, a thread), else kInternal. In a catch clause.
Error CaughtError() noexcept;

// What `body` returns, a Result or nothing; what it throws is an error, too. Threads do their work
// in this, because an exception that left one would end the process.
template <typename Body>
auto CatchAll(const Body& body) noexcept {
  using Returned = std::invoke_result_t<const Body&>;
  using Caught = std::conditional_t<std::is_void_v<Returned>, Status, Returned>;
  try {
    if constexpr (std::is_void_v<Returned>) {
      body();
      return Caught();
    } else {
      return Caught(body());
    }
  } catch (...) {
    return Caught(std::unexpected(CaughtError()));
  }
}

// Ends the process with exit code 1, and a line on standard error that names the thread.
[[noreturn]] void EndProcess(const char* thread, const Error& error) noexcept;

// All that a thread does for which others wait. Where there is not even the memory to tell them of
// an error, they would wait for ever: the process ends.
template <typename Body>
void EndOnException(const char* thread, const Body& body) noexcept {
  if (const Status done = CatchAll(body); !done) EndProcess(thread, done.error());
}

}  // namespace pliant
