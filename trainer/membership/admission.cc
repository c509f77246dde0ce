#include "trainer/membership/admission.h"

#include <string>

#include "base/format.h"
#include "trainer/membership/fingerprint_keys.h"

namespace pliant {
namespace {

Fingerprint ComparableFingerprint(Fingerprint fingerprint) {
  fingerprint.erase(kFingerprintGpuProblem);
  return fingerprint;
}

std::string ValueOf(const Fingerprint& fingerprint, const std::string& name) {
  const auto found = fingerprint.find(name);
  return found == fingerprint.end() ? std::string("nothing") : "\"" + found->second + "\"";
}

// For example: "; cpu is "avx2", not nothing".
std::string Differences(const Fingerprint& own, const Fingerprint& other) {
  Fingerprint names = own;
  names.insert(other.begin(), other.end());
  std::string differences;
  for (const auto& [name, unused] : names) {
    const std::string here = ValueOf(own, name);
    const std::string there = ValueOf(other, name);
    if (here != there) differences += Format("; {} is {}, not {}", name, here, there);
  }
  return differences;
}

}  // namespace

std::optional<Refusal> CheckAdmission(const Roster& roster, const Hello& hello) {
  if (hello.protocol != kProtocolVersion) {
    return Refusal{
        .problem = {"Protocol", Format("learner {} speaks protocol {}, the coordinator {}",
                                       hello.learner.name, hello.protocol, kProtocolVersion)}};
  }
  // All learners that take part, or may, have the same fingerprint: compare with any of them.
  const Fingerprint own = ComparableFingerprint(hello.fingerprint);
  for (const auto& [id, other] : roster.learners()) {
    if (id == hello.learner || !other.connected()) continue;
    const std::string differences = Differences(own, ComparableFingerprint(other.fingerprint));
    if (differences.empty()) continue;
    return Refusal{.problem = {"Fingerprint", Format("learner {} differs from {}{}",
                                                     hello.learner.name, id.name, differences)},
                   .lists_learner = true};
  }
  return std::nullopt;
}

}  // namespace pliant
