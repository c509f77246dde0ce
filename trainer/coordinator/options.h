#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/log.h"

namespace pliant {

struct CoordinatorProcessOptions {
  std::string job;
  std::string job_uid;
  std::uint64_t term = 0;
  int max_learners = 0;
  std::filesystem::path tls_dir = "/etc/pliant/tls";
  std::filesystem::path state_dir = "/var/lib/pliant";
  std::string address;  // empty: all addresses
  std::uint16_t port = 8443;
  std::uint16_t status_port = 9090;
  std::uint16_t probe_port = 8081;
  log::Level log_level = log::Level::kInfo;
  log::Format log_format = log::Format::kJson;
};

// Reads the command line and, for options not given there, the environment (docs/contracts.md §2).
// Prints help or an error and exits if there is nothing to run.
CoordinatorProcessOptions ParseOptionsOrExit(int argc, char** argv);

}  // namespace pliant
