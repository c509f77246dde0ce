#pragma once

#include <chrono>
#include <string>

namespace pliant::kube {

// A MicroTime of the Kubernetes API: "2026-01-01T00:00:00.000000Z".
std::string MicroTime(std::chrono::system_clock::time_point time);

}  // namespace pliant::kube
