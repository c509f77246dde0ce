#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/event_loop.h"
#include "base/result.h"
#include "operator/kube/http_transport.h"

namespace pliant::kube {

// An error of a call to the API server. It converts to Error, so that callers that need only the
// code and the sentence can use RETURN_IF_ERROR and ASSIGN_OR_RETURN.
struct KubeError : Error {
  KubeError(Error error) : Error(std::move(error)) {}  // NOLINT: implicit, as Error converts
  KubeError(ErrorCode error_code, std::string sentence) : Error{error_code, std::move(sentence)} {}

  int http_status = 0;  // 0 when there was no answer
  std::string reason;   // from the server's Status object: "AlreadyExists", "Expired"
  std::optional<Duration> retry_after;  // the time that the server asks to wait
};

// Whether the server refuses this request itself. A rejected credential (401), or having none, does
// not count: the request may succeed with another one.
inline bool IsRefusal(const KubeError& error) {
  return error.code == ErrorCode::kInvalid ||
         (error.code == ErrorCode::kDenied && error.http_status == 403);
}

// As for any Error; the other fields of the server's answer are kept.
inline KubeError InContext(std::string_view doing, KubeError error) {
  error.message.insert(0, std::string(doing) + ": ");
  return error;
}

template <typename T>
using KubeResult = std::expected<T, KubeError>;
using KubeStatus = KubeResult<void>;

// From an answer that is no success. The sentence is the server's own, which names the wrong
// fields; if the body is no Status object, it names the HTTP status.
//   400, 405, 406, 413, 415, 422 kInvalid · 401, 403 kDenied · 404 kNotFound
//   409 kAlreadyExists or kConflict · 410 kGone · 429 kThrottled · 408, 5xx kUnavailable
// 504 and Status reason "Timeout" are kTimeout: the server may still do it.
KubeError ErrorFromResponse(const HttpResponse& response);
// From the Status object of a watch's ERROR event, given as JSON text.
KubeError ErrorFromStatus(const std::string& status_object);

}  // namespace pliant::kube
