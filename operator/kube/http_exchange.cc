#include "operator/kube/http_exchange.h"

#include <chrono>
#include <utility>

#include "operator/kube/line_splitter.h"

namespace pliant::kube {
namespace {

using std::chrono::steady_clock;

// Maximum of bytes that wait for the caller; beyond it the library stops reading from the socket.
constexpr std::size_t kMaxWaitingBytes = std::size_t{1} << 20;
// A cancelled request ends at once, except one that waits for the resolver, which cannot be
// interrupted: that request is abandoned after this time.
constexpr auto kCancelGrace = std::chrono::seconds(1);

}  // namespace

void HttpExchange::SetHead(int status, HttpHeaders headers) {
  Change(
      [&] { head_ = HttpResponse{.status = status, .headers = std::move(headers), .body = {}}; });
}

bool HttpExchange::Write(std::string_view bytes) {
  bool room = true;
  Change([&] {
    if (left_behind_) return;
    waiting_.append(bytes);
    room = waiting_.size() < kMaxWaitingBytes;
  });
  return room;
}

void HttpExchange::OnRoom(std::function<void()> on_room) {
  {
    const std::lock_guard lock(mutex_);
    if (!left_behind_ && waiting_.size() >= kMaxWaitingBytes) {
      on_room_ = std::move(on_room);
      return;
    }
  }
  on_room();
}

void HttpExchange::SetEnd(std::optional<std::string> failure) {
  Change([&] {
    ended_ = true;
    failure_ = std::move(failure);
  });
}

HttpExchange::Event HttpExchange::Next(Deadline deadline, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto happened = [this] { return ended_ || (head_ && (!head_taken_ || !waiting_.empty())); };
  const bool any = changed_.wait_until(lock, stop, deadline, happened);
  // Check even if there is always something to read: a flood of data must not extend the deadline.
  if (stop.stop_requested()) return Event::kStopped;
  if (!any || (!ended_ && steady_clock::now() >= deadline)) return Event::kTimeout;
  if (head_ && !head_taken_) return Event::kHead;
  return !waiting_.empty() ? Event::kBytes : Event::kEnd;
}

HttpResponse HttpExchange::TakeHead() {
  const std::lock_guard lock(mutex_);
  head_taken_ = true;
  return *head_;
}

std::string HttpExchange::TakeBytes() {
  std::function<void()> on_room;
  std::string bytes;
  {
    const std::lock_guard lock(mutex_);
    bytes = std::exchange(waiting_, {});
    on_room = std::exchange(on_room_, nullptr);
  }
  if (on_room) on_room();
  return bytes;
}

void HttpExchange::LeaveBehind(const std::function<void()>& cancel) {
  {
    const std::lock_guard lock(mutex_);
    left_behind_ = true;
  }
  TakeBytes();
  cancel();
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kCancelGrace, [this] { return ended_; });
}

void HttpExchange::Change(const std::function<void()>& change) {
  {
    const std::lock_guard lock(mutex_);
    change();
  }
  changed_.notify_all();
}

Result<HttpResponse> HttpExchange::Follow(const Following& following) {
  const std::string& server = following.server;
  const auto fail = [&](Result<HttpResponse> result) {
    LeaveBehind(following.cancel);
    return result;
  };
  HttpResponse response;
  bool streaming = false;
  std::optional<LineSplitter> lines;
  if (following.sink != nullptr) lines.emplace(*following.sink, kMaxLineBytes);
  const auto total_deadline = steady_clock::now() + following.request.deadline;
  while (true) {
    const auto deadline = streaming ? steady_clock::now() + following.idle : total_deadline;
    switch (Next(deadline, following.stop)) {
      case Event::kHead:
        response = TakeHead();
        streaming = lines && response.status / 100 == 2;
        if (streaming && following.request.on_open) following.request.on_open();
        break;
      case Event::kBytes:
        if (streaming) {
          const LineSplitter::Outcome outcome = lines->Feed(TakeBytes());
          if (outcome == LineSplitter::Outcome::kMore) break;
          if (outcome == LineSplitter::Outcome::kStopped) return fail(std::move(response));
          return fail(Invalid(server + ": a line of the answer is longer than " +
                              std::to_string(kMaxLineBytes) + " bytes"));
        }
        response.body += TakeBytes();
        if (response.body.size() > following.request.max_body_bytes) {
          return fail(Invalid(server + ": the answer is longer than " +
                              std::to_string(following.request.max_body_bytes) + " bytes"));
        }
        break;
      case Event::kEnd: {
        std::unique_lock lock(mutex_);
        if (failure_) return std::unexpected(following.explain(*failure_));
        lock.unlock();
        // A library may mistake the orderly end of a connection for the end of a head.
        if (response.status == 0) {
          return std::unexpected(following.explain("the answer ended within its head"));
        }
        if (streaming) lines->Finish();
        return response;
      }
      case Event::kTimeout:
        return fail(
            Fail(ErrorCode::kTimeout, server + (streaming ? ": nothing came for too long"
                                                          : ": no answer before the deadline")));
      case Event::kStopped:
        return fail(Fail(ErrorCode::kCancelled, "stopped"));
    }
  }
}

}  // namespace pliant::kube
