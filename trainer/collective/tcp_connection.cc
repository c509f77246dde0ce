#include "trainer/collective/tcp_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/format.h"

namespace pliant {
namespace {

using boost::system::error_code;

// A turn of the loop reads or writes at most this much, so that other peers and timers get theirs.
constexpr std::size_t kTcpTurnBytes = std::size_t{4} << 20;
// The checksum follows the bytes while they are in cache.
constexpr std::size_t kTcpReadBytes = std::size_t{256} << 10;
constexpr std::size_t kPartsMost = 64;
// Heads are made for this much ahead, so that the checksum leaves in cache what is sent next.
constexpr std::size_t kGatherBytes = std::size_t{256} << 10;

// A peer whose machine vanished shows in seconds, both when this side sends and when it only waits.
// Buffer sizes are left to the kernel: a fixed one would switch off its tuning, below a lower
// limit.
void TuneSocket(int socket, Duration unacknowledged_most) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));  // an optimisation only
  };
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(unacknowledged_most).count();
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(milliseconds));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

TcpConnection::TcpConnection(Socket socket, Owner& owner, const ConnectionLimits& limits,
                             BytePool& pool, std::shared_ptr<const TlsKey> key, TlsKey::Side side)
    : socket_(std::move(socket)),
      owner_(&owner),
      limits_(limits),
      pool_(pool),
      key_(std::move(key)),
      side_(side),
      timer_(socket_.get_executor()) {}

void TcpConnection::Dial(const boost::asio::ip::tcp::endpoint& address, const PeerHello& hello) {
  SendHello(hello);
  StartTimer();
  socket_.async_connect(address, [self = Self()](const error_code& error) {
    if (self->closed()) return;
    if (error) return self->Fail(error.message());
    self->Begin();
  });
}

void TcpConnection::Serve() {
  StartTimer();
  Begin();
}

void TcpConnection::StartTimer() {
  timer_.expires_after(limits_.handshake_timeout);
  timer_.async_wait([self = Self()](const error_code& error) {
    if (!error && !self->closed() && self->phase_ != Phase::kOpen)
      self->Fail("no answer within the handshake's time");
  });
}

void TcpConnection::Begin() {
  error_code error;
  socket_.non_blocking(true, error);
  if (error) return Fail(error.message());
  TuneSocket(socket_.native_handle(), limits_.unacknowledged_most);
  const int socket = socket_.native_handle();
  stream_ = key_ == nullptr ? NewPlainStream(socket) : key_->NewStream(socket, side_);
  phase_ = Phase::kSecuring;
  Advance();
}

void TcpConnection::Accept(const PeerHello* hello) {
  CHECK(!closed() && phase_ == Phase::kHello, "a hello came");
  phase_ = Phase::kOpen;
  timer_.cancel();
  if (hello != nullptr) SendHello(*hello);
}

void TcpConnection::SendHello(const PeerHello& hello) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(EncodeHello(hello));
  Send({.header = {.kind = kHelloKind}, .payload = {.owner = bytes, .view = *bytes}});
}

void TcpConnection::Send(Frame frame) {
  if (closed()) return;
  queued_bytes_ += kFrameHeadBytes + frame.payload.view.size();
  queue_.push_back({.frame = std::move(frame)});
  FlushSoon();
}

void TcpConnection::Close() {
  if (closed()) return;
  owner_ = nullptr;
  queue_.clear();
  payload_ = {};
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

void TcpConnection::End(const PeerLoss& loss) {
  Owner* const owner = owner_;
  Close();
  owner->OnConnectionClosed(*this, loss);
}

void TcpConnection::Wait(Socket::wait_type what, Waiting& waiting) {
  if (std::exchange(waiting.on, true)) return;
  socket_.async_wait(what,
                     InMemory(waiting.memory, [self = Self(), &waiting](const error_code& error) {
                       waiting.on = false;
                       if (!self->closed() && !error) self->Advance();
                     }));
}

void TcpConnection::WaitReadable() { Wait(Socket::wait_read, readable_); }
void TcpConnection::WaitWritable() { Wait(Socket::wait_write, writable_); }

void TcpConnection::FlushSoon() {
  if (flush_posted_) return;
  flush_posted_ = true;
  boost::asio::post(ContextOf(socket_), InMemory(flush_memory_, [self = Self()] {
                      self->flush_posted_ = false;
                      if (self->closed() || self->phase_ == Phase::kConnecting) return;
                      if (self->queued_bytes_ > self->limits_.send_queue_bytes_most)
                        return self->Fail(Format("{} bytes wait to be sent", self->queued_bytes_));
                      self->Advance();
                    }));
}

void TcpConnection::Advance() {
  const auto self = shared_from_this();  // an owner may let go of it in any call
  if (phase_ == Phase::kSecuring && !Secure()) return;
  WriteSome();
  if (!closed()) ReadSome();
}

bool TcpConnection::Secure() {
  const IoResult done = stream_->Handshake();
  switch (done.state) {
    case IoState::kReady:
      phase_ = Phase::kHello;
      return true;
    case IoState::kWantRead:
      WaitReadable();
      return false;
    case IoState::kWantWrite:
      WaitWritable();
      return false;
    case IoState::kClosed:
      Fail(done.reason);
      return false;
  }
  return false;
}

void TcpConnection::ReadSome() {
  std::size_t turn = 0;
  while (turn < kTcpTurnBytes) {
    std::span<std::byte> space = has_head_ ? payload_.view : std::span<std::byte>(head_);
    space = space.subspan(received_);
    const IoResult got = stream_->Read(space.first(std::min(space.size(), kTcpReadBytes)));
    switch (got.state) {
      case IoState::kReady:
        break;
      case IoState::kWantRead:
        return WaitReadable();
      case IoState::kWantWrite:
        return WaitWritable();
      case IoState::kClosed:
        return Fail(got.reason);
    }
    if (has_head_ && !stream_->authenticates())
      payload_crc_ = Crc32c(space.first(got.bytes), payload_crc_);
    received_ += got.bytes;
    turn += got.bytes;
    if (got.bytes == space.size() && !(has_head_ ? TakePayload() : TakeHead())) return;
  }
  FlushSoon();  // TLS may hold bytes that no longer make the socket readable
}

// A whole head came. False when the connection ended.
bool TcpConnection::TakeHead() {
  const Result<FrameHeadFields> fields = DecodeFrameHead(head_);
  if (!fields) {
    End({.reason = fields.error().message, .violation = stream_->authenticates()});
    return false;
  }
  const std::uint64_t most =
      phase_ == Phase::kOpen ? limits_.payload_bytes_most : std::uint64_t{kHelloBytesMost};
  if (fields->payload_bytes > most) {
    End({.reason =
             Format("a frame of {} bytes, at most {} are allowed", fields->payload_bytes, most),
         .violation = true});
    return false;
  }
  if ((fields->header.kind == kHelloKind) != (phase_ == Phase::kHello)) {
    End({.reason = "the peer sent a hello out of turn, or none", .violation = true});
    return false;
  }
  fields_ = *fields;
  has_head_ = true;
  received_ = 0;
  payload_crc_ = 0;
  payload_ = {};
  if (fields_.payload_bytes == 0) return TakePayload();
  if (phase_ == Phase::kOpen)
    payload_ = owner_->PlaceFor(*this, fields_.header, fields_.payload_bytes);
  if (payload_.view.empty()) payload_ = pool_.Take(fields_.payload_bytes);
  CHECK(payload_.view.size() == fields_.payload_bytes, "a place is as large as the payload");
  return true;
}

// A whole payload came. False when the connection ended, or was closed by the owner.
bool TcpConnection::TakePayload() {
  if (payload_crc_ != fields_.payload_crc) {
    End({.reason = "the payload of a frame has a wrong checksum",
         .violation = stream_->authenticates()});
    return false;
  }
  has_head_ = false;
  received_ = 0;
  const MutableBytes payload = std::exchange(payload_, {});
  if (phase_ == Phase::kHello) {
    const Result<PeerHello> hello = DecodeHello(payload.view);
    if (hello)
      owner_->OnHello(*this, *hello);
    else
      Fail(hello.error().message);
  } else {
    owner_->OnConnectionFrame(*this, {.header = fields_.header,
                                      .payload = {.owner = payload.owner, .view = payload.view}});
  }
  return !closed();
}

void TcpConnection::WriteSome() {
  std::size_t turn = 0;
  while (!queue_.empty()) {
    if (turn >= kTcpTurnBytes) return FlushSoon();
    parts_.clear();
    std::size_t skip = sent_;
    std::size_t gathered = 0;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      // No further than a turn: checksums of frames whose turn is far would go through memory
      // twice.
      if (parts_.size() + 2 > kPartsMost || gathered >= kGatherBytes) break;
      Outgoing& outgoing = queue_[i];
      const std::span<const std::byte> payload = outgoing.frame.payload.view;
      if (!std::exchange(outgoing.has_head, true))
        outgoing.head =
            EncodeFrameHead({.header = outgoing.frame.header,
                             .payload_bytes = payload.size(),
                             .payload_crc = stream_->authenticates() ? 0 : Crc32c(payload)});
      for (const std::span<const std::byte> part :
           {std::span<const std::byte>(outgoing.head), payload}) {
        const std::size_t skipped = std::min(skip, part.size());
        skip -= skipped;
        if (skipped < part.size()) parts_.push_back(part.subspan(skipped));
        gathered += part.size() - skipped;
      }
    }
    const IoResult done = stream_->Write(parts_);
    Consume(done.bytes);
    turn += done.bytes;
    switch (done.state) {
      case IoState::kReady:
        break;
      case IoState::kWantRead:
        return WaitReadable();
      case IoState::kWantWrite:
        return WaitWritable();
      case IoState::kClosed:
        return Fail(done.reason);
    }
  }
  const IoResult flushed = stream_->Flush();
  if (flushed.state == IoState::kWantWrite) WaitWritable();
  if (flushed.state == IoState::kClosed) Fail(flushed.reason);
}

void TcpConnection::Consume(std::size_t bytes) {
  queued_bytes_ -= bytes;
  sent_ += bytes;
  while (!queue_.empty() && sent_ >= kFrameHeadBytes + queue_.front().frame.payload.view.size()) {
    sent_ -= kFrameHeadBytes + queue_.front().frame.payload.view.size();
    queue_.take_front();
  }
}

}  // namespace pliant
