#include "trainer/collective/connection_driver.h"

#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "base/check.h"
#include "trainer/collective/socket_context.h"

namespace pliant {
namespace {

using boost::system::error_code;

constexpr std::size_t kLingerBytes = std::size_t{16} << 10;

}  // namespace

ConnectionDriver::ConnectionDriver(Socket socket, Owner& owner, Duration handshake_timeout,
                                   MakeCodec make_codec)
    : socket_(std::move(socket)),
      owner_(&owner),
      handshake_timeout_(handshake_timeout),
      make_codec_(std::move(make_codec)),
      timer_(socket_.get_executor()) {}

void ConnectionDriver::Dial(const Endpoint& address, const PeerHello& hello) {
  StartTimer();
  socket_.async_connect(address, [self = shared_from_this(), hello](const error_code& error) {
    if (self->closed()) return;
    if (error) return self->End(error.message());
    self->Begin(&hello);
  });
}

void ConnectionDriver::Serve() {
  StartTimer();
  Begin(nullptr);
}

void ConnectionDriver::StartTimer() {
  timer_.expires_after(handshake_timeout_);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && !self->closed() && !self->open_)
      self->End("no answer before the handshake timeout");
  });
}

void ConnectionDriver::Begin(const PeerHello* hello) {
  error_code error;
  socket_.non_blocking(true, error);
  if (error) return End(error.message());
  waker_ = std::make_shared<ConnectionWaker>(ContextOf(socket_), [weak = weak_from_this()] {
    const auto connection = weak.lock();
    if (connection != nullptr && !connection->closed()) connection->Advance();
  });
  codec_ = make_codec_(socket_.native_handle(), [waker = waker_] { waker->Wake(); });
  if (hello != nullptr) codec_->SayHello(*hello);
  Advance();
}

void ConnectionDriver::Accept(std::shared_ptr<const LearnerId> peer, const PeerHello* hello) {
  CHECK(!closed() && codec_ != nullptr && !open_, "a hello came");
  open_ = true;
  peer_ = std::move(peer);
  timer_.cancel();
  codec_->Open();
  if (hello == nullptr) return;
  codec_->SayHello(*hello);
  FlushSoon();
}

void ConnectionDriver::Send(Frame frame) {
  if (closed()) return;
  CHECK(open_, "frames follow the hellos");
  codec_->Put(std::move(frame));
  FlushSoon();
}

void ConnectionDriver::Close() {
  if (closed()) return;
  owner_ = nullptr;
  timer_.cancel();
  error_code ignored;
  if (waker_ != nullptr) waker_->End();
  if (codec_ != nullptr && codec_->Close()) {
    socket_.shutdown(Socket::shutdown_send, ignored);
    Linger();
  } else {
    socket_.close(ignored);
  }
}

// The peer may be about to read memory of this process before it notices that this side has closed:
// the payloads that were announced to it must still be there. When the peer closes its end, or its
// process ends, it will no longer read.
void ConnectionDriver::Linger() {
  std::array<std::byte, kLingerBytes> unread;
  ssize_t got = 0;
  do {
    got = ::recv(socket_.native_handle(), unread.data(), unread.size(), MSG_DONTWAIT);
  } while (got > 0 || (got < 0 && errno == EINTR));
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    socket_.async_wait(Socket::wait_read,
                       [self = shared_from_this()](const error_code&) { self->Linger(); });
    return;
  }
  codec_->Release();
  error_code ignored;
  socket_.close(ignored);
}

void ConnectionDriver::End(const std::string& reason) {
  Owner* const owner = owner_;
  Close();
  owner->OnConnectionClosed(*this, {.reason = reason});
}

void ConnectionDriver::Wait(Socket::wait_type what, bool& waiting) {
  if (std::exchange(waiting, true)) return;
  socket_.async_wait(what, [self = shared_from_this(), &waiting](const error_code& error) {
    waiting = false;
    if (!self->closed() && !error) self->Advance();
  });
}

void ConnectionDriver::FlushSoon() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(ContextOf(socket_), [self = shared_from_this()] {
    self->flush_posted_ = false;
    if (!self->closed()) self->Advance();
  });
}

void ConnectionDriver::Advance() {
  const auto self = shared_from_this();  // an owner may release the connection in any call
  Follow(codec_->WriteSome());
  if (!closed()) Follow(codec_->ReadSome(*this));
}

void ConnectionDriver::Follow(const CodecPause& pause) {
  switch (pause.until) {
    case CodecPause::Until::kAsked:
      return;
    case CodecPause::Until::kNextTurn:
      return FlushSoon();
    case CodecPause::Until::kReadable:
      return Wait(Socket::wait_read, awaits_readable_);
    case CodecPause::Until::kWritable:
      return Wait(Socket::wait_write, awaits_writable_);
    case CodecPause::Until::kNever:
      return End(pause.reason);
  }
}

MutableBytes ConnectionDriver::ReceiveBufferFor(const FrameHeader& header, std::size_t bytes) {
  return owner_->ReceiveBufferFor(*this, header, bytes);
}

bool ConnectionDriver::OnHello(const PeerHello& hello) {
  owner_->OnHello(*this, hello);
  return !closed();
}

bool ConnectionDriver::OnFrame(Frame frame) {
  owner_->OnConnectionFrame(*this, std::move(frame));
  return !closed();
}

}  // namespace pliant
