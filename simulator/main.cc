// The simulator: a parts list. Decisions are made elsewhere.

#include <iostream>
#include <variant>

#include <unistd.h>

#include "base/overloaded.h"
#include "simulator/ask_what_if.h"
#include "simulator/options.h"
#include "simulator/simulate.h"

int main(int argc, char** argv) {
  using namespace pliant;
  const auto options = simulator::ParseOptions(argc, argv, std::cout, std::cerr);
  if (!options) return options.error();
  std::ostream* const progress = isatty(STDERR_FILENO) == 1 ? &std::cerr : nullptr;
  return std::visit(Overloaded{[&](const simulator::SimulateOptions& each) {
                                 return simulator::Simulate(each, std::cout, std::cerr, progress);
                               },
                               [](const simulator::WhatIfOptions& each) {
                                 return simulator::AskWhatIf(each, std::cin, std::cout, std::cerr);
                               }},
                    *options);
}
