#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"

// The interface between the Kubernetes client and the HTTP library. Plain values only: it uses no
// name of that library.
namespace pliant::kube {

// Compares header names ignoring case.
struct LessIgnoringCase {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};
using HttpHeaders = std::map<std::string, std::string, LessIgnoringCase>;

enum class HttpMethod { kGet, kPost, kPut, kPatch, kDelete };
std::string_view ToString(HttpMethod method);

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string target;  // path and query, percent-encoded: "/api/v1/pods?limit=500"
  // A Host header sets the name that the server's certificate must be for, instead of its address.
  HttpHeaders headers;
  std::string body;
  // Send: from the call to the last byte of the answer. Stream: from the call to the head of the
  // answer.
  Duration deadline = std::chrono::seconds(30);
  // A longer answer is aborted with kInvalid; lines of a stream have their own limit.
  std::size_t max_body_bytes = std::size_t{256} << 20;
  // Stream: called when the head of a successful answer has arrived, before its first line.
  std::function<void()> on_open;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

// Receives one line of a streamed answer, without its line end. False ends the stream.
using LineSink = std::function<bool(std::string_view line)>;

// One server. All members may be called from any thread at the same time; both block the caller.
// An answer of any status is a result: an error means that there is none.
//   kUnavailable  not connected, not trusted, or cut off; a request that was cut off may have been
//                 done, and may have been sent twice
//   kTimeout      the deadline or the idle time passed; it may have been done
//   kCancelled    `stop` was requested
//   kInvalid      the answer is larger than the request or this transport takes
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  // Redirects are answers, never followed.
  virtual Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {}) = 0;

  // Passes each line of a successful (2xx) answer to `sink` as it arrives, on the calling thread.
  // Returns when the server ends the answer or `sink` returns false; the response then has no body.
  // An answer with another status goes to the response's body, none of it to `sink`. `idle`: the
  // longest time without a byte, after the head of the answer.
  virtual Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink,
                                      Duration idle, std::stop_token stop = {}) = 0;
};

}  // namespace pliant::kube
