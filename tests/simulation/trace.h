#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string_view>

#include "base/event_loop.h"

namespace pliant::sim {

// Everything that happens in one simulated world, in order: for learners their messages, frames
// with payloads, and committed ticks; for operators their requests and answers, and what they
// report about jobs. Two versions of the code with equal traces behave the same: this proves that a
// change only moves code. When a world ends that was the n-th of its test, a line "suite.test n
// events digest" is appended to the file that PLIANT_TRACES names. PLIANT_TRACE_LINES names a file
// for the events themselves.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Whether the trace is read. If not, a world that does not use its own digest need not record
  // anything.
  bool on() const { return digests_.is_open() || lines_.is_open(); }
  std::uint64_t digest() const { return digest_; }
  void Note(TimePoint at, std::string_view who, std::string_view what);

 private:
  std::ofstream digests_;
  std::ofstream lines_;
  std::uint64_t events_ = 0;
  std::uint64_t digest_;
};

// FNV-1a, 64 bits: stands for a payload in a line.
std::uint64_t DigestOf(std::span<const std::byte> bytes);
std::uint64_t DigestOf(std::string_view text);

}  // namespace pliant::sim
