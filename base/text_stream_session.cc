#include "base/text_stream_session.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

namespace pliant {

namespace asio = boost::asio;

namespace {
constexpr auto kRefusalTimeout = std::chrono::seconds(2);
}  // namespace

TextStreamSession::TextStreamSession(ByteStream stream, std::size_t max_backlog)
    : max_backlog_(max_backlog), stream_(std::move(stream)) {
  stream_.ExpiresNever();
}

asio::awaitable<void> TextStreamSession::Run(std::string header, bool once) {
  const auto self = shared_from_this();
  if (once) {
    stream_.ExpiresAfter(kRefusalTimeout);
    open_ = false;
    auto [error, bytes] = co_await asio::async_write(stream_, asio::buffer(header), kAwait);
    static_cast<void>(bytes);
    if (!error) co_await stream_.ShutDown();
    co_return;
  }
  // Texts that were sent before this wait behind the header.
  queue_.push_front({.text = std::make_shared<const std::string>(std::move(header))});
  begun_ = true;
  StartWriting();
  // A reader sends nothing more: the end of a read is its end.
  std::array<char, 256> ignored;
  while (open_) {
    auto [error, bytes] = co_await stream_.async_read_some(asio::buffer(ignored), kAwait);
    static_cast<void>(bytes);
    if (error) break;
  }
  Close();
}

void TextStreamSession::Send(std::shared_ptr<const std::string> text) {
  if (!open_) return;
  const std::size_t bytes = begun_ ? text->size() : 0;
  if (writing_ && backlog_ + bytes > max_backlog_) {
    Close();
    return;
  }
  backlog_ += bytes;
  queue_.push_back({.text = std::move(text), .bytes = bytes});
  if (begun_) StartWriting();
}

void TextStreamSession::Close() {
  open_ = false;
  queue_.clear();
  backlog_ = 0;
  stream_.Close();
}

void TextStreamSession::StartWriting() {
  if (std::exchange(writing_, true)) return;
  asio::co_spawn(stream_.get_executor(), Write(shared_from_this()), &RethrowBug);
}

asio::awaitable<void> TextStreamSession::Write(std::shared_ptr<TextStreamSession> self) {
  while (self->open_ && !self->queue_.empty()) {
    const Waiting next = std::move(self->queue_.front());
    self->queue_.pop_front();
    self->backlog_ -= next.bytes;
    auto [error, bytes] =
        co_await asio::async_write(self->stream_, asio::buffer(*next.text), kAwait);
    static_cast<void>(bytes);
    if (error && self->open_) self->Close();
  }
  self->writing_ = false;
}

}  // namespace pliant
