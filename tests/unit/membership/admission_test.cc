#include "trainer/membership/admission.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/membership/learners.h"
#include "trainer/membership/fingerprint_keys.h"

namespace pliant {
namespace {

TEST(CheckAdmission, ComparesWithThoseWhoAreConnected) {
  const struct {
    const char* name;
    Hello hello;
    const char* reason;  // "": it is admitted
    const char* message;
    bool lists_learner;
  } kCases[] = {
      {"the same", {.fingerprint = {{"cpu", "avx2"}, {"gpu", "none"}}}, "", "", false},
      {"what its container holds may differ",
       {.fingerprint = {{"cpu", "avx2"}, {"gpu", "none"}, {kFingerprintGpuProblem, "it is old"}}},
       "",
       "",
       false},
      {"another value",
       {.fingerprint = {{"cpu", "neon"}, {"gpu", "none"}}},
       "Fingerprint",
       "learner c differs from a; cpu is \"neon\", not \"avx2\"",
       true},
      {"one too few and one too many",
       {.fingerprint = {{"cpu", "avx2"}, {"os", "linux"}}},
       "Fingerprint",
       "learner c differs from a; gpu is nothing, not \"none\"; os is \"linux\", not nothing",
       true},
      {"another protocol",
       {.protocol = 99, .fingerprint = {{"cpu", "neon"}}},
       "Protocol",
       "learner c speaks protocol 99, the coordinator 1",
       false},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    Roster roster;
    roster.Connect(1, {.learner = Id('a'), .fingerprint = {{"cpu", "avx2"}, {"gpu", "none"}}},
                   TimePoint{});
    Hello hello = test.hello;
    hello.learner = Id('c');
    const std::optional<Refusal> refusal = CheckAdmission(roster, hello);
    ASSERT_EQ(refusal.has_value(), *test.reason != '\0');
    if (refusal) {
      EXPECT_EQ(refusal->problem, (Problem{test.reason, test.message}));
      EXPECT_EQ(refusal->lists_learner, test.lists_learner);
    }
    hello.protocol = kProtocolVersion;
    hello.learner = Id('a');
    EXPECT_FALSE(CheckAdmission(roster, hello)) << "it is compared with the others";
    hello.learner = Id('c');
    roster.Disconnect(Id('a'), TimePoint{});
    EXPECT_FALSE(CheckAdmission(roster, hello)) << "there is no other learner";
  }
}

}  // namespace
}  // namespace pliant
