#include "trainer/collective/tcp_frame_codec.h"

#include <algorithm>
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

// A turn of the loop reads or writes at most this much, so that other peers and timers get their
// turn.
constexpr std::size_t kTcpTurnBytes = std::size_t{4} << 20;
// Bytes per read: the checksum is computed while they are in the cache.
constexpr std::size_t kTcpReadBytes = std::size_t{256} << 10;
constexpr std::size_t kMaxParts = 64;
// Heads are made for this much ahead, so that a payload is still in the cache from its checksum
// when it is sent.
constexpr std::size_t kGatherBytes = std::size_t{256} << 10;

// Makes the loss of a peer's machine visible within seconds, both when this side sends and when it
// only waits. Buffer sizes are left to the kernel: a fixed size would turn off its tuning, and its
// maximum is lower.
void TuneSocket(int socket, Duration max_unacknowledged) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));  // an optimisation only
  };
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(max_unacknowledged).count();
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(milliseconds));
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 3);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

TcpFrameCodec::TcpFrameCodec(int socket, const ConnectionLimits& limits, BytePool& pool,
                             std::shared_ptr<const TlsKey> key, TlsKey::Side side)
    : limits_(limits),
      pool_(pool),
      key_(std::move(key)),
      stream_(key_ == nullptr ? NewPlainStream(socket) : key_->NewStream(socket, side)) {
  TuneSocket(socket, limits_.max_unacknowledged);
}

void TcpFrameCodec::SayHello(const PeerHello& hello) {
  const auto bytes = std::make_shared<const std::vector<std::byte>>(EncodeHello(hello));
  Put({.header = {.kind = kHelloKind}, .payload = {.owner = bytes, .view = *bytes}});
}

void TcpFrameCodec::Open() {
  CHECK(phase_ == Phase::kHello, "a hello came");
  phase_ = Phase::kOpen;
}

void TcpFrameCodec::Put(Frame frame) {
  queued_bytes_ += kFrameHeadBytes + frame.payload.view.size();
  queue_.push_back({.frame = std::move(frame)});
}

bool TcpFrameCodec::Close() {
  queue_.clear();
  payload_ = {};
  return false;
}

// ---- In ----

CodecPause TcpFrameCodec::ReadSome(FrameSink& sink) {
  if (phase_ == Phase::kSecuring) return CodecPause::Asked();
  std::size_t turn = 0;
  while (turn < kTcpTurnBytes) {
    std::span<std::byte> space = has_head_ ? payload_.view : std::span<std::byte>(head_);
    space = space.subspan(received_);
    IoResult got = stream_->Read(space.first(std::min(space.size(), kTcpReadBytes)));
    if (got.state != IoState::kReady) return CodecPause::Of(std::move(got));
    if (has_head_ && !stream_->authenticates())
      payload_crc_ = Crc32c(space.first(got.bytes), payload_crc_);
    received_ += got.bytes;
    turn += got.bytes;
    if (got.bytes < space.size()) continue;
    if (const auto stop = has_head_ ? TakePayload(sink) : TakeHead(sink)) return *stop;
  }
  return CodecPause::NextTurn();  // TLS may hold bytes that no longer make the socket readable
}

// A whole head has arrived.
std::optional<CodecPause> TcpFrameCodec::TakeHead(FrameSink& sink) {
  const Result<FrameHeadFields> fields = DecodeFrameHead(head_);
  if (!fields) return CodecPause::Failed(fields.error().message);
  const std::uint64_t most =
      phase_ == Phase::kOpen ? limits_.max_payload_bytes : std::uint64_t{kMaxHelloBytes};
  if (fields->payload_bytes > most)
    return CodecPause::Failed(
        Format("a frame of {} bytes, at most {} are allowed", fields->payload_bytes, most));
  if ((fields->header.kind == kHelloKind) != (phase_ == Phase::kHello))
    return CodecPause::Failed("the peer sent a hello out of turn, or none");
  fields_ = *fields;
  has_head_ = true;
  received_ = 0;
  payload_crc_ = 0;
  payload_ = {};
  if (fields_.payload_bytes == 0) return TakePayload(sink);
  if (phase_ == Phase::kOpen)
    payload_ = sink.ReceiveBufferFor(fields_.header, fields_.payload_bytes);
  if (payload_.view.empty()) payload_ = pool_.Take(fields_.payload_bytes);
  CHECK(payload_.view.size() == fields_.payload_bytes, "a place is as large as the payload");
  return std::nullopt;
}

// A whole payload has arrived.
std::optional<CodecPause> TcpFrameCodec::TakePayload(FrameSink& sink) {
  if (payload_crc_ != fields_.payload_crc)
    return CodecPause::Failed("the payload of a frame has a wrong checksum");
  has_head_ = false;
  received_ = 0;
  const MutableBytes payload = std::exchange(payload_, {});
  bool continues = false;
  if (phase_ == Phase::kHello) {
    const Result<PeerHello> hello = DecodeHello(payload.view);
    if (!hello) return CodecPause::Failed(hello.error().message);
    continues = sink.OnHello(*hello);
  } else {
    continues = sink.OnFrame(
        {.header = fields_.header, .payload = {.owner = payload.owner, .view = payload.view}});
  }
  return continues ? std::nullopt : std::optional(CodecPause::Asked());
}

// ---- Out ----

CodecPause TcpFrameCodec::WriteSome() {
  if (phase_ == Phase::kSecuring) {
    IoResult secured = stream_->Handshake();
    if (secured.state != IoState::kReady) return CodecPause::Of(std::move(secured));
    phase_ = Phase::kHello;
  }
  if (queued_bytes_ > limits_.max_send_queue_bytes)
    return CodecPause::Failed(Format("{} bytes wait to be sent", queued_bytes_));
  std::size_t turn = 0;
  while (!queue_.empty()) {
    if (turn >= kTcpTurnBytes) return CodecPause::NextTurn();
    GatherParts();
    IoResult done = stream_->Write(parts_);
    Consume(done.bytes);
    turn += done.bytes;
    if (done.state != IoState::kReady) return CodecPause::Of(std::move(done));
  }
  IoResult flushed = stream_->Flush();
  if (flushed.state == IoState::kWantWrite || flushed.state == IoState::kClosed)
    return CodecPause::Of(std::move(flushed));
  return CodecPause::Asked();
}

// Fills parts_ with what is sent next.
void TcpFrameCodec::GatherParts() {
  parts_.clear();
  std::size_t skip = sent_;
  std::size_t gathered = 0;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    // No further than a turn: payloads that are sent much later would be read from memory twice,
    // for the checksum and for sending.
    if (parts_.size() + 2 > kMaxParts || gathered >= kGatherBytes) break;
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
}

void TcpFrameCodec::Consume(std::size_t bytes) {
  queued_bytes_ -= bytes;
  sent_ += bytes;
  while (!queue_.empty() && sent_ >= kFrameHeadBytes + queue_.front().frame.payload.view.size()) {
    sent_ -= kFrameHeadBytes + queue_.front().frame.payload.view.size();
    queue_.pop_front();
  }
}

}  // namespace pliant
