#pragma once

#include <string>
#include <string_view>

#include "trainer/membership/messages.h"
#include "trainer/process/learner_environment.h"
#include "trainer/protocol/program.h"

namespace pliant {

// What decides which kernels a math library picks: vendor, family and model of the first processor,
// and its vector instructions; from the text of /proc/cpuinfo. "unknown" when it says none of it.
std::string DescribeCpu(std::string_view cpuinfo);

// Equal on two learners that compute the same bits. `framework` names the library that computes,
// and its version; `info` is of the program.
Fingerprint MakeFingerprint(const LearnerEnvironment& environment, const std::string& framework,
                            const ProgramInfo& info, std::string_view cpuinfo);

}  // namespace pliant
