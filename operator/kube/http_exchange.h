#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "operator/kube/http_transport.h"

namespace pliant::kube {

// State shared by the thread of an HTTP library and the caller of one request. The library's thread
// only moves bytes in; slow work runs on the caller's thread.
class HttpExchange {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

  // How the caller follows one request.
  struct Following {
    const HttpRequest& request;
    const LineSink* sink = nullptr;  // null: all bytes go to the response
    Duration idle{};                 // as in HttpTransport::Stream
    std::stop_token stop;
    std::string server;            // for errors
    std::function<void()> cancel;  // makes the request end soon; called on the caller's thread
    std::function<Error(std::string failure)> explain;
  };

  // The whole caller's side: blocks until the answer has ended or the wait for it is aborted.
  Result<HttpResponse> Follow(const Following& following);

  // The library's side.

  void SetHead(int status, HttpHeaders headers);
  // Returns whether there is room for more. Bytes are accepted even if there is none.
  bool Write(std::string_view bytes);
  // Calls `on_room` when there is room: immediately, or later on the caller's thread.
  void OnRoom(std::function<void()> on_room);
  void SetEnd(std::optional<std::string> failure);

 private:
  enum class Event { kHead, kBytes, kEnd, kTimeout, kStopped };
  using Deadline = std::chrono::steady_clock::time_point;

  // The next event: first the head, then bytes, then the end, which may also come first.
  Event Next(Deadline deadline, const std::stop_token& stop);
  HttpResponse TakeHead();
  std::string TakeBytes();
  void LeaveBehind(const std::function<void()>& cancel);
  void Change(const std::function<void()>& change);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // The following are guarded by mutex_.
  std::optional<HttpResponse> head_;
  bool head_taken_ = false;
  std::string waiting_;
  std::function<void()> on_room_;
  bool ended_ = false;
  std::optional<std::string> failure_;
  bool left_behind_ = false;  // bytes that still arrive are dropped
};

}  // namespace pliant::kube
