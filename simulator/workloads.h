#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "simulator/inputs/scenario.h"
#include "simulator/model/profile.h"
#include "simulator/options.h"

namespace pliant::simulator {

// The content of one file.
struct NamedScenario {
  std::string name;  // for people: that of the file without its folder, as far as names differ
  std::string file;
  Scenario scenario;
};

// Reads the files that the options name. All that it returns can be simulated by the policies of
// the options. An error names the file and the remedy.
Result<std::vector<NamedScenario>> ReadScenarios(const SimulateOptions& options,
                                                 const Profiles& profiles);

}  // namespace pliant::simulator
