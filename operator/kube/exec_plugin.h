#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "operator/kube/run_command.h"

// Programs that a kubeconfig names to get credentials from: users[].user.exec, of the API group
// client.authentication.k8s.io, in the versions v1 and v1beta1.
namespace pliant::kube {

struct ExecPlugin {
  std::string api_version;  // "client.authentication.k8s.io/v1"
  Command command;          // with KUBERNETES_EXEC_INFO in its environment
  std::string install_hint;
};

// What a plugin answered.
struct ExecCredential {
  std::string token;               // "" if it gave none
  std::string client_certificate;  // PEM; this and the key, or neither
  std::string client_key;
  std::optional<std::chrono::system_clock::time_point> expires;
};

// From a plugin's output. The error names the field, and no value: those are secrets.
Result<ExecCredential> ParseExecCredential(std::string_view output, std::string_view api_version);

// Runs the plugin and waits for its answer. kUnavailable for whatever keeps it from giving one: the
// server has refused nothing yet. The sentence says what it was, the plugin's own complaint, and
// the hint for its installation if it is not there: for the log, as these may say anything.
Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const std::stop_token& stop = {});

}  // namespace pliant::kube
