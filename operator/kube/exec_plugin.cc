#include "operator/kube/exec_plugin.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/time.h"
#include "operator/kube/json_fields.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

// A field that may be absent, but has to be text if it is there.
Result<std::string> TextAt(const json& status, const char* field) {
  const auto found = status.find(field);
  if (found == status.end() || found->is_null()) return std::string();
  if (!found->is_string()) return Invalid(std::string("status.") + field + " is no text");
  return found->get<std::string>();
}

Result<std::string> PemAt(const json& status, const char* field) {
  ASSIGN_OR_RETURN(std::string pem, TextAt(status, field));
  if (!pem.empty() && !pem.contains("-----BEGIN ")) {
    return Invalid(std::string("status.") + field + " is no PEM");
  }
  return pem;
}

// What a program says about itself may hold anything; a log line shall stay one.
std::string OneLine(std::string text) {
  text.erase(0, text.find_first_not_of(" \r\n\t"));
  text.erase(text.find_last_not_of(" \r\n\t") + 1);
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; };
  std::ranges::replace_if(text, is_control, ' ');
  return text;
}

}  // namespace

Result<ExecCredential> ParseExecCredential(std::string_view output, std::string_view api_version) {
  const json answer = json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return Invalid("what it wrote is no JSON object");
  if (StringAt(answer, "kind") != "ExecCredential") return Invalid("kind is not ExecCredential");
  if (StringAt(answer, "apiVersion") != api_version) {
    return Invalid("apiVersion is not " + std::string(api_version) + ", as the kubeconfig says");
  }
  const auto status = answer.find("status");
  if (status == answer.end() || !status->is_object()) return Invalid("status is missing");

  ExecCredential credential;
  ASSIGN_OR_RETURN(credential.token, TextAt(*status, "token"));
  ASSIGN_OR_RETURN(credential.client_certificate, PemAt(*status, "clientCertificateData"));
  ASSIGN_OR_RETURN(credential.client_key, PemAt(*status, "clientKeyData"));
  ASSIGN_OR_RETURN(const std::string expires, TextAt(*status, "expirationTimestamp"));
  const bool printable = std::ranges::all_of(credential.token, [](char c) {
    return c > ' ' && c < 0x7f;  // it goes into a header, as it is
  });
  if (!printable) return Invalid("status.token holds what no bearer token may");
  if (credential.client_certificate.empty() != credential.client_key.empty()) {
    return Invalid("status.clientCertificateData and status.clientKeyData go together");
  }
  if (credential.token.empty() && credential.client_certificate.empty()) {
    return Invalid("status has neither token nor clientCertificateData and clientKeyData");
  }
  if (!expires.empty()) {
    const Result<api::WallTime> time = api::ParseTime(expires);
    if (!time) return Invalid("status.expirationTimestamp is no RFC 3339 time");
    credential.expires = *time;
  }
  return credential;
}

Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const std::stop_token& stop) {
  const std::string name = "credential plugin '" + plugin.command.program + "'";
  const Result<CommandOutput> ran = RunCommand(plugin.command, stop);
  if (!ran) {
    if (ran.error().code == ErrorCode::kCancelled) return std::unexpected(ran.error());
    std::string why = ran.error().message;
    if (ran.error().code == ErrorCode::kNotFound && !plugin.install_hint.empty()) {
      why += ". " + OneLine(plugin.install_hint);
    }
    return Fail(ErrorCode::kUnavailable, "users[].user.exec: " + name + " did not run: " + why);
  }
  if (ran->exit_status != 0) {
    const std::string complaint = OneLine(ran->complaint);
    return Fail(ErrorCode::kUnavailable, name + " failed with exit status " +
                                             std::to_string(ran->exit_status) +
                                             (complaint.empty() ? "" : ": " + complaint));
  }
  Result<ExecCredential> credential = ParseExecCredential(ran->output, plugin.api_version);
  if (!credential) {
    return Fail(ErrorCode::kUnavailable,
                name + " gave no usable ExecCredential: " + credential.error().message);
  }
  return credential;
}

}  // namespace pliant::kube
