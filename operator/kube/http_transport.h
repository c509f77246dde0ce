#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"

// The seam between the Kubernetes client and the library that speaks HTTP. Plain values only: no
// name of that library passes.
namespace pliant::kube {

// Header names are compared without regard to case.
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
  // A Host header names whom the server's certificate has to be for, in place of its address.
  HttpHeaders headers;
  std::string body;
  // Send: from the call to the last byte of the answer. Stream: to the head of the answer.
  Duration deadline = std::chrono::seconds(30);
  // An answer that is longer is given up, with kInvalid; lines of a stream have a limit of their
  // own.
  std::size_t body_bytes_max = std::size_t{256} << 20;
  // Stream: called before the first line of a successful answer, when its head has come.
  std::function<void()> on_open;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  std::string body;
};

// Takes one line of a streamed answer, without its line end. False ends the stream.
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

  // Hands each line of a successful (2xx) answer to `sink` as it arrives, on the calling thread,
  // and returns when the server ended the answer or `sink` wanted no more; the response then has no
  // body. An answer of another status goes to the response's body, none of it to `sink`.
  // `idle`: the longest time without a byte, after the head of the answer.
  virtual Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink,
                                      Duration idle, std::stop_token stop = {}) = 0;
};

}  // namespace pliant::kube
