#include "trainer/collective/shm_frame_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "base/format.h"

namespace pliant {
namespace {

static_assert(DescriptorStream::kReadBytes >= 2 * (kMaxShmInline + sizeof(ShmRecord)));
// A turn of the loop takes in payloads of about this size, so that the frames that follow from them
// are sent while the next payloads are processed.
constexpr std::size_t kShmTurnBytes = std::size_t{512} << 10;
constexpr std::size_t kMaxLoans = std::size_t{1} << 20;  // from the first that was not returned

std::span<const std::byte> BytesOf(const ShmRecord& record) {
  return std::as_bytes(std::span(&record, 1));
}

}  // namespace

ShmFrameCodec::ShmFrameCodec(int socket, const ConnectionLimits& limits, BytePool& pool,
                             SharedMemory& memory, const ShmKey& key, ShmSide side,
                             std::function<void()> wake)
    : limits_(limits),
      pool_(pool),
      handshake_(key, side, DrawShmChallenge()),
      lender_(memory),
      borrower_(pool, limits.max_payload_bytes, std::move(wake)),
      stream_(socket) {
  const ShmChallenge& challenge = handshake_.challenge();
  PutRecord({.type = ShmRecordType::kChallenge, .bytes = challenge.size()}, challenge);
}

void ShmFrameCodec::SayHello(const PeerHello& hello) {
  handshake_.Say(hello);
  PutHello();
}

bool ShmFrameCodec::Close() {
  stream_.DropBlocks();
  return lender_.loans() > 0;
}

// ---- Out ----

void ShmFrameCodec::PutRecord(const ShmRecord& record, std::span<const std::byte> payload) {
  stream_.Put(BytesOf(record));
  stream_.Put(payload);
}

bool ShmFrameCodec::PutHello() {
  const auto payload = handshake_.TakeHello();
  if (!payload) return false;
  PutRecord({.type = ShmRecordType::kHello, .bytes = payload->size()}, *payload);
  return true;
}

void ShmFrameCodec::Put(Frame frame) {
  if (lacks_memory_) return;  // no gap: no frame follows a lost one
  const std::span<const std::byte> payload = frame.payload.view;
  // Return first what was read: this makes room for what the peer does when this frame arrives.
  PutReturns();
  ShmRecord record = RecordOf(frame.header);
  record.bytes = payload.size();
  if (payload.size() <= kMaxShmInline) return PutRecord(record, payload);

  const std::optional<ShmLender::Loan> loan = lender_.Lend(std::move(frame.payload));
  if (!loan) {
    lacks_memory_ = true;
    return;
  }
  for (const std::uint64_t block : loan->forgotten)
    PutRecord({.type = ShmRecordType::kForget, .block = block});
  record.block = loan->block->id();
  record.offset = loan->offset;
  if (loan->announce) {
    stream_.PutDescriptor(loan->block);
    PutRecord({.type = ShmRecordType::kBlock,
               .block = record.block,
               .bytes = loan->block->view().size()});
  }
  PutRecord(record);
}

void ShmFrameCodec::PutReturns() {
  borrower_.TakeReturns(returned_);
  for (const std::uint64_t number : returned_)
    PutRecord({.type = ShmRecordType::kReturn, .offset = number});
  returned_.clear();
}

CodecPause ShmFrameCodec::WriteSome() {
  PutReturns();
  const std::uint64_t queued = lender_.bytes() + stream_.queued_bytes();
  if (queued > limits_.max_send_queue_bytes)
    return CodecPause::Failed(Format("{} bytes wait to be read", queued));
  if (lender_.loans() > kMaxLoans)
    return CodecPause::Failed("the peer does not return the payloads that it was lent");
  IoResult written = stream_.Write();
  // Write before failing: the records before the lost frame still reach the peer.
  if (lacks_memory_) return CodecPause::Failed("the kernel gives no shared memory");
  if (written.state != IoState::kReady) return CodecPause::Of(std::move(written));
  return CodecPause::Asked();
}

// ---- In ----

CodecPause ShmFrameCodec::ReadSome(FrameSink& sink) {
  std::size_t turn_bytes = 0;
  while (true) {
    if (const Stop stop = TakeRecords(sink, turn_bytes)) return *stop;
    IoResult got = stream_.Read();
    if (got.state != IoState::kReady) return CodecPause::Of(std::move(got));
  }
}

// Takes all complete records. `turn_bytes`: of the payloads since the turn began.
ShmFrameCodec::Stop ShmFrameCodec::TakeRecords(FrameSink& sink, std::size_t& turn_bytes) {
  while (stream_.received().size() >= sizeof(ShmRecord)) {
    if (turn_bytes >= kShmTurnBytes) return CodecPause::NextTurn();
    const std::span<const std::byte> received = stream_.received();
    ShmRecord record;
    std::memcpy(&record, received.data(), sizeof(record));
    std::size_t size = sizeof(record);
    if (record.has_payload()) {
      const std::uint64_t most =
          handshake_.open() ? kMaxShmInline : sizeof(ShmProof) + kMaxHelloBytes;
      if (record.bytes > most)
        return CodecPause::Failed(
            Format("a record of {} bytes, at most {} are allowed", record.bytes, most));
      size += static_cast<std::size_t>(record.bytes);
    }
    if (received.size() < size) return std::nullopt;
    stream_.Consume(size);
    turn_bytes += static_cast<std::size_t>(record.type == ShmRecordType::kFrame ? record.bytes : 0);
    if (Stop stop = Take(record, received.first(size).subspan(sizeof(record)), sink)) return stop;
  }
  return std::nullopt;
}

ShmFrameCodec::Stop ShmFrameCodec::Take(const ShmRecord& record, std::span<const std::byte> payload,
                                        FrameSink& sink) {
  if (handshake_.Expects(record.type)) {
    switch (record.type) {
      case ShmRecordType::kChallenge:
        return TakeChallenge(payload);
      case ShmRecordType::kHello:
        return TakeHello(payload, sink);
      case ShmRecordType::kBlock:
        return TakeBlock(record);
      case ShmRecordType::kForget:
        return FailUnless(borrower_.Forget(record.block));
      case ShmRecordType::kFrame:
        return TakeFrame(record, payload, sink);
      case ShmRecordType::kReturn:
        return FailUnless(lender_.Return(record.offset));
    }
  }
  return CodecPause::Failed("the peer does not speak this protocol");
}

ShmFrameCodec::Stop ShmFrameCodec::TakeChallenge(std::span<const std::byte> payload) {
  const Status taken = handshake_.OnChallenge(payload);
  if (!taken) return FailUnless(taken);
  // The next turn writes the hello.
  return PutHello() ? Stop(CodecPause::NextTurn()) : std::nullopt;
}

ShmFrameCodec::Stop ShmFrameCodec::TakeHello(std::span<const std::byte> payload, FrameSink& sink) {
  const Result<PeerHello> hello = handshake_.OnHello(payload);
  if (!hello) return CodecPause::Failed(hello.error().message);
  return sink.OnHello(*hello) ? std::nullopt : Stop(CodecPause::Asked());
}

ShmFrameCodec::Stop ShmFrameCodec::TakeBlock(const ShmRecord& record) {
  const std::optional<int> descriptor = stream_.TakeDescriptor();
  if (!descriptor) return CodecPause::Failed("the peer announced a block without its descriptor");
  const Status mapped = borrower_.Map(record, *descriptor);
  ::close(*descriptor);
  return FailUnless(mapped);
}

ShmFrameCodec::Stop ShmFrameCodec::TakeFrame(const ShmRecord& record,
                                             std::span<const std::byte> payload, FrameSink& sink) {
  const std::optional<FrameHeader> header = HeaderOf(record);
  if (!header) return CodecPause::Failed(Format("frame kind {} is not known", record.kind));
  Frame frame{.header = *header, .payload = {}};
  if (record.block != 0) {
    Result<Bytes> borrowed =
        borrower_.Borrow(record, IsGradient(header->kind) ? ShmBorrower::Access::kInPlace
                                                          : ShmBorrower::Access::kCopy);
    if (!borrowed) return CodecPause::Failed(borrowed.error().message);
    frame.payload = *std::move(borrowed);
  } else if (!payload.empty()) {
    MutableBytes space = sink.ReceiveBufferFor(*header, payload.size());
    if (space.view.empty()) space = pool_.Take(payload.size());
    std::ranges::copy(payload, space.view.begin());
    frame.payload = {.owner = std::move(space.owner), .view = space.view};
  }
  return sink.OnFrame(std::move(frame)) ? std::nullopt : Stop(CodecPause::Asked());
}

ShmFrameCodec::Stop ShmFrameCodec::FailUnless(const Status& status) {
  return status ? std::nullopt : Stop(CodecPause::Failed(status.error().message));
}

}  // namespace pliant
