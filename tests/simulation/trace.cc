#include "tests/simulation/trace.h"

#include <cstdlib>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/format.h"

namespace pliant::sim {
namespace {

constexpr std::uint64_t kOffset = 14695981039346656037U;
constexpr std::uint64_t kPrime = 1099511628211U;

std::uint64_t Digest(std::uint64_t digest, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    digest = (digest ^ std::to_integer<std::uint64_t>(byte)) * kPrime;
  }
  return digest;
}

std::ofstream FileNamedBy(const char* variable) {
  const char* const path = std::getenv(variable);
  return path != nullptr ? std::ofstream(path, std::ios::app) : std::ofstream();
}

std::string RunningTest() {
  const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
  return test != nullptr ? Format("{}.{}", test->test_suite_name(), test->name()) : "none";
}

}  // namespace

std::uint64_t DigestOf(std::span<const std::byte> bytes) { return Digest(kOffset, bytes); }

std::uint64_t DigestOf(std::string_view text) { return DigestOf(std::as_bytes(std::span(text))); }

Trace::Trace()
    : digests_(FileNamedBy("PLIANT_TRACES")),
      lines_(FileNamedBy("PLIANT_TRACE_LINES")),
      digest_(kOffset) {}

Trace::~Trace() {
  if (!digests_.is_open()) return;
  static std::map<std::string, int> worlds;
  const std::string test = RunningTest();
  digests_ << Format("{} {} {} {:016x}\n", test, ++worlds[test], events_, digest_);
}

void Trace::Note(TimePoint at, std::string_view who, std::string_view what) {
  const std::string line = Format("{} {} {}\n", at.time_since_epoch().count(), who, what);
  ++events_;
  digest_ = Digest(digest_, std::as_bytes(std::span(line)));
  if (lines_.is_open()) lines_ << line;
}

}  // namespace pliant::sim
