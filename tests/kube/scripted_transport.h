#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "operator/kube/http_transport.h"

namespace pliant::kube {

// A scripted server for tests. Answers are given in the order of the script, each to the next
// request of its method whose target starts with its prefix. A request without an answer fails the
// program, because the test did not mean to send it.
class ScriptedTransport final : public HttpTransport {
 public:
  // Ends a stream after its lines.
  enum class StreamEnd {
    kOrderly,  // as after timeoutSeconds
    kBroken,   // kUnavailable
    kIdle,     // kTimeout
    kHold,     // stays open until `stop`, then kCancelled
  };

  void Answer(HttpMethod method, std::string target_prefix, Result<HttpResponse> answer);
  void AnswerStream(std::string target_prefix, std::vector<std::string> lines, StreamEnd end);
  // Answers a stream request with something other than a stream.
  void RefuseStream(std::string target_prefix, Result<HttpResponse> answer);
  // Answers all requests that have no scripted answer.
  void AnswerRest(std::function<Result<HttpResponse>(const HttpRequest&)> answer);

  // All requests sent so far, in order.
  std::vector<HttpRequest> requests() const;
  // Whether all scripted answers were used.
  bool done() const;
  // Waits in real time until all were used.
  bool WaitUntilDone(std::chrono::milliseconds limit);

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop = {}) override;

 private:
  struct Scripted {
    HttpMethod method;
    std::string target_prefix;
    bool stream = false;
    Result<HttpResponse> answer;
    std::vector<std::string> lines;
    StreamEnd end = StreamEnd::kOrderly;
  };

  std::optional<Scripted> TakeScripted(const HttpRequest& request, bool stream);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Scripted> script_;                                   // guarded by mutex_
  std::vector<HttpRequest> requests_;                             // guarded by mutex_
  std::function<Result<HttpResponse>(const HttpRequest&)> rest_;  // guarded by mutex_
};

}  // namespace pliant::kube
