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

// An error of a call to the API server. It converts to Error, so that callers who need the code and
// the sentence only pass it on by RETURN_IF_ERROR and ASSIGN_OR_RETURN.
struct KubeError : Error {
  KubeError(Error error) : Error(std::move(error)) {}  // NOLINT: implicit, as Error converts
  KubeError(ErrorCode error_code, std::string sentence) : Error{error_code, std::move(sentence)} {}

  int http_status = 0;                  // 0 when there was no answer
  std::string reason;                   // of the server's Status object: "AlreadyExists", "Expired"
  std::optional<Duration> retry_after;  // how long the server asked to wait
};

// Whether what was asked for is not to be had. That the server does not know who asks (401), or
// that there is no credential to ask with, is the caller's own trouble.
inline bool IsRefusal(const KubeError& error) {
  return error.code == ErrorCode::kInvalid ||
         (error.code == ErrorCode::kDenied && error.http_status == 403);
}

// As of any error; what the server said beside its sentence stays.
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
