#pragma once

#include <expected>
#include <type_traits>

#include "base/result.h"

namespace pliant {

// The exception that is being handled, as an error: kUnavailable if the machine refused a resource
// (memory, a file, a thread), else kInternal. For use in a catch clause.
Error CaughtError() noexcept;

// Returns the result of `body` (a Result or void); an exception that it throws becomes an error.
// Threads run their work in this, because an exception that leaves a thread would end the process.
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

// For the whole body of a thread that others wait for. If there is not even memory to report an
// error, they would wait forever: the process ends instead.
template <typename Body>
void EndOnException(const char* thread, const Body& body) noexcept {
  if (const Status done = CatchAll(body); !done) EndProcess(thread, done.error());
}

}  // namespace pliant
