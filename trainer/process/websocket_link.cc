#include "trainer/process/websocket_link.h"

#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/real_event_loop.h"
#include "trainer/membership/messages.h"

namespace pliant {

class WebSocketLink::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(RealEventLoop& loop, WebSocketLinkOptions options)
      : loop_(loop), options_(std::move(options)), backoff_(options_.backoff) {}

  void Start(CoordinatorHandler* handler) {
    handler_ = handler;
    Dial();
  }

  void Send(const LearnerMessage& message) {
    if (socket_) socket_->Send(Encode(message));
  }

  void Redial() {
    if (!socket_) return;  // it is dialling, or about to
    Forget("this coordinator is outdated");
    DialLater();
  }

  void Finish(Duration most, std::function<void()> done) {
    handler_ = nullptr;
    finished_ = std::move(done);
    loop_.PostAfter(socket_ ? most : Duration::zero(),
                    [self = shared_from_this()] { self->Finished(); });
    if (socket_) std::exchange(socket_, nullptr)->Close("the learner ends");
  }

  // Called when the link is destroyed.
  void Abandon() {
    handler_ = nullptr;
    finished_ = nullptr;
    if (socket_) Forget("the learner ends");
    ++attempt_;
  }

 private:
  void Dial() {
    const std::uint64_t attempt = ++attempt_;
    ConnectWebSocket(loop_, options_.endpoint, options_.limits,
                     [self = shared_from_this(), attempt](auto socket) {
                       return self->OnDialled(attempt, std::move(socket));
                     });
  }

  void DialLater() {
    const Duration delay = backoff_.Next(std::uniform_real_distribution<double>(0, 1)(random_));
    loop_.PostAfter(delay, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->handler_ != nullptr && !self->socket_) self->Dial();
    });
  }

  WebSocketCallbacks OnDialled(std::uint64_t attempt, Result<std::shared_ptr<WebSocket>> socket) {
    if (attempt != attempt_ || handler_ == nullptr) {
      if (socket) (*socket)->Drop("the learner ends");
      return {};
    }
    if (!socket) {
      // The same error in a row is logged once.
      if (std::exchange(last_error_, socket.error().message) != socket.error().message) {
        log::Warning("no connection to the coordinator, trying again",
                     {{"error", socket.error().message}});
      }
      DialLater();
      return {};
    }
    last_error_.clear();
    socket_ = *std::move(socket);
    connected_at_ = loop_.Now();
    handler_->OnCoordinatorConnected();
    return {.on_message = [self = shared_from_this(),
                           attempt](std::string text) { self->OnText(attempt, text); },
            .on_closed = [self = shared_from_this(),
                          attempt](std::string_view reason) { self->OnClosed(attempt, reason); }};
  }

  void OnText(std::uint64_t attempt, std::string_view text) {
    if (attempt != attempt_ || handler_ == nullptr) return;
    auto message = DecodeCoordinatorMessage(text);
    if (message) {
      handler_->OnCoordinatorMessage(*std::move(message));
      return;
    }
    log::Warning("the coordinator's message is not understood",
                 {{"error", message.error().message}});
    if (socket_) socket_->Close(message.error().message);
  }

  void OnClosed(std::uint64_t attempt, std::string_view reason) {
    if (finished_) Finished();
    if (attempt != attempt_ || !socket_) return;
    socket_.reset();
    if (loop_.Now() - connected_at_ >= options_.good_after) backoff_.Reset();
    log::Info("connection to the coordinator ended", {{"reason", reason}});
    DialLater();
    if (handler_ != nullptr) handler_->OnCoordinatorDisconnected(reason);
  }

  // Closes the connection without calling the handler.
  void Forget(std::string_view reason) {
    ++attempt_;
    std::exchange(socket_, nullptr)->Close(reason);
  }

  void Finished() {
    if (finished_) std::exchange(finished_, nullptr)();
  }

  RealEventLoop& loop_;
  const WebSocketLinkOptions options_;
  Backoff backoff_;
  std::minstd_rand random_{std::random_device{}()};
  CoordinatorHandler* handler_ = nullptr;  // none: not started, or finished
  std::shared_ptr<WebSocket> socket_;      // none: not connected
  std::uint64_t attempt_ = 0;              // callbacks of earlier ones are ignored
  TimePoint connected_at_;
  std::string last_error_;
  std::function<void()> finished_;
};

WebSocketLink::WebSocketLink(RealEventLoop& loop, WebSocketLinkOptions options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}
WebSocketLink::~WebSocketLink() { impl_->Abandon(); }

void WebSocketLink::Start(CoordinatorHandler* handler) { impl_->Start(handler); }
void WebSocketLink::Send(const LearnerMessage& message) { impl_->Send(message); }
void WebSocketLink::Redial() { impl_->Redial(); }
void WebSocketLink::Finish(Duration most, std::function<void()> done) {
  impl_->Finish(most, std::move(done));
}

}  // namespace pliant
