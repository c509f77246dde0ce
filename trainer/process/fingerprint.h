#pragma once

#include <string>
#include <string_view>

#include "trainer/membership/messages.h"
#include "trainer/process/learner_environment.h"
#include "trainer/protocol/program.h"

namespace pliant {

// The properties of the CPU by which a math library selects kernels: vendor, family and model of
// the first processor, and its vector instructions; from the text of /proc/cpuinfo. "unknown" if
// the text has none of them.
std::string DescribeCpu(std::string_view cpuinfo);

// The fingerprint is equal on two learners that compute the same bits. `framework`: the library
// that computes, and its version.
Fingerprint MakeFingerprint(const LearnerEnvironment& environment, const std::string& framework,
                            const ProgramInfo& info, std::string_view cpuinfo);

}  // namespace pliant
