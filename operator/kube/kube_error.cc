#include "operator/kube/kube_error.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/utf8.h"
#include "operator/kube/json_fields.h"

namespace pliant::kube {
namespace {

using nlohmann::json;

// A longer wait is not plausible and is ignored.
constexpr std::chrono::seconds kMaxWait = std::chrono::hours(24);

std::optional<Duration> Wait(int seconds) {
  if (seconds <= 0 || seconds > kMaxWait.count()) return std::nullopt;
  return std::chrono::seconds(seconds);
}

ErrorCode CodeFor(int http_status, std::string_view reason) {
  if (reason == "Timeout") return ErrorCode::kTimeout;
  switch (http_status) {
    case 400:
    case 405:
    case 406:
    case 413:
    case 415:
    case 422:
      return ErrorCode::kInvalid;
    case 401:
    case 403:
      return ErrorCode::kDenied;
    case 404:
      return ErrorCode::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    case 410:
      return ErrorCode::kGone;
    case 429:
      return ErrorCode::kThrottled;
    case 504:
      return ErrorCode::kTimeout;
    case 408:
      return ErrorCode::kUnavailable;
    default:
      return http_status >= 500 ? ErrorCode::kUnavailable : ErrorCode::kInternal;
  }
}

// The wrong fields that the server's sentence does not already name.
std::string FieldsNotNamed(const json& details, const std::string& sentence) {
  std::string fields;
  const auto causes = details.find("causes");
  if (causes == details.end() || !causes->is_array()) return fields;
  for (const json& cause : *causes) {
    if (!cause.is_object()) continue;
    const std::string field = StringAt(cause, "field");
    if (field.empty() || sentence.find(field) != std::string::npos) continue;
    fields += (fields.empty() ? "" : "; ") + field + ": " + StringAt(cause, "message");
  }
  return fields;
}

// From a Status object; `http_status` is used if the object has no code.
KubeError FromStatus(const json& status, int http_status) {
  std::string sentence = StringAt(status, "message");
  const std::string reason = StringAt(status, "reason");
  if (const int code = IntAt(status, "code"); code != 0) http_status = code;
  std::optional<Duration> retry_after;
  if (const auto details = status.find("details");
      details != status.end() && details->is_object()) {
    retry_after = Wait(IntAt(*details, "retryAfterSeconds"));
    if (const std::string fields = FieldsNotNamed(*details, sentence); !fields.empty()) {
      sentence += " (" + fields + ")";
    }
  }
  if (sentence.empty()) sentence = reason.empty() ? "HTTP " + std::to_string(http_status) : reason;
  KubeError error(CodeFor(http_status, reason), std::move(sentence));
  error.http_status = http_status;
  error.reason = reason;
  error.retry_after = retry_after;
  return error;
}

// Reads only the form that the API server uses: seconds, not a date.
std::optional<Duration> RetryAfterHeader(const HttpHeaders& headers) {
  const auto header = headers.find("Retry-After");
  if (header == headers.end()) return std::nullopt;
  int seconds = 0;
  const std::string& text = header->second;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Wait(seconds);
}

}  // namespace

KubeError ErrorFromResponse(const HttpResponse& response) {
  const json body = json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  KubeError error(ErrorCode::kInternal, "");
  if (body.is_object() && body.contains("status")) {
    error = FromStatus(body, response.status);
  } else {
    // A proxy answered, or the server before it is ready: quote the beginning of the plain text.
    error = FromStatus(json::object(), response.status);
    const std::string text = CutAtCharacter(response.body, 200);
    if (!text.empty()) error.message += ": " + text;
  }
  if (const auto wait = RetryAfterHeader(response.headers)) error.retry_after = wait;
  return error;
}

KubeError ErrorFromStatus(const std::string& status_object) {
  const json status = json::parse(status_object, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return KubeError(ErrorCode::kInternal, "no Status object");
  return FromStatus(status, 0);
}

}  // namespace pliant::kube
