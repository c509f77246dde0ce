#pragma once

#include <cstdint>
#include <fstream>
#include <span>
#include <string_view>

#include "base/event_loop.h"

namespace pliant::sim {

// Everything that happens in one simulated world, in order: of learners their messages, frames with
// payloads and committed ticks, of operators what they exchange with others and what they tell of
// jobs. Two versions of the
// code with equal traces behave the same, which is how a change that only moves code is proven. Of
// a world that was the n-th of its test, a line "suite.test n events digest" is appended to the
// file that PLIANT_TRACES names, when the world ends; PLIANT_TRACE_LINES names a file for the
// events themselves.
class Trace {
 public:
  Trace();
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Whether somebody reads it: a world that makes nothing of its digest need note nothing else.
  bool on() const { return digests_.is_open() || lines_.is_open(); }
  std::uint64_t digest() const { return digest_; }
  void Note(TimePoint at, std::string_view who, std::string_view what);

 private:
  std::ofstream digests_;
  std::ofstream lines_;
  std::uint64_t events_ = 0;
  std::uint64_t digest_;
};

// FNV-1a, 64 bits: of a payload, for a line.
std::uint64_t DigestOf(std::span<const std::byte> bytes);
std::uint64_t DigestOf(std::string_view text);

}  // namespace pliant::sim
