#include "trainer/collective/shm_connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/check.h"
#include "base/format.h"
#include "base/secret.h"

namespace pliant {
namespace {

using boost::system::error_code;

constexpr std::size_t kShmReadBytes = std::size_t{128} << 10;
static_assert(kShmReadBytes >= 2 * (kShmInlineMost + sizeof(ShmRecord)));
// A turn of the loop takes in payloads of this much, so that what follows from them is on its way
// while the next ones are worked on.
constexpr std::size_t kShmTurnBytes = std::size_t{512} << 10;
constexpr std::size_t kStagingKeptBytes = std::size_t{64} << 20;
constexpr std::size_t kDescriptorsMost = 16;  // that came and were not named yet
constexpr std::size_t kBlocksMost = 4096;     // of one peer
// Sent since the first payload that was not returned.
constexpr std::size_t kLentMost = std::size_t{1} << 20;

}  // namespace

// Numbers of payloads that were read. Their readers may be other threads, and outlive the
// connection.
class ShmConnection::Returns : public std::enable_shared_from_this<Returns> {
 public:
  Returns(boost::asio::io_context& context, std::weak_ptr<ShmConnection> connection)
      : context_(context), connection_(std::move(connection)) {}

  void Add(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    numbers_.push_back(number);
    if (std::exchange(posted_, true)) return;
    boost::asio::post(context_, InMemory(memory_, [self = shared_from_this()] { self->Tell(); }));
  }

  void MoveTo(std::vector<std::uint64_t>& numbers) {
    const std::lock_guard lock(mutex_);
    numbers.swap(numbers_);
  }

  // The loop may be gone from here on.
  void End() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }

 private:
  void Tell() {
    {
      const std::lock_guard lock(mutex_);
      posted_ = false;
    }
    const auto connection = connection_.lock();
    if (connection != nullptr && !connection->closed()) connection->Advance();
  }

  boost::asio::io_context& context_;
  HandlerMemory memory_;
  const std::weak_ptr<ShmConnection> connection_;
  std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;  // guarded by mutex_
  bool posted_ = false;                 // guarded by mutex_: Tell is on its way
  bool ended_ = false;                  // guarded by mutex_
};

ShmConnection::ShmConnection(Socket socket, Owner& owner, const ConnectionLimits& limits,
                             BytePool& pool, SharedMemory& memory, const ShmKey& key, ShmSide side)
    : socket_(std::move(socket)),
      owner_(&owner),
      limits_(limits),
      pool_(pool),
      memory_(memory),
      key_(key),
      side_(side),
      timer_(socket_.get_executor()),
      challenge_(DrawShmChallenge()),
      staging_(kStagingKeptBytes, memory),
      in_(kShmReadBytes) {}

ShmConnection::~ShmConnection() {
  for (const int descriptor : in_descriptors_) ::close(descriptor);
}

void ShmConnection::Dial(const std::string& path, const PeerHello& hello) {
  hello_ = hello;
  StartTimer();
  socket_.async_connect(path, [self = Self()](const error_code& error) {
    if (self->closed()) return;
    if (error) {
      self->Fail(error.message());
      return;
    }
    self->Begin();
  });
}

void ShmConnection::Serve() {
  StartTimer();
  Begin();
}

void ShmConnection::StartTimer() {
  timer_.expires_after(limits_.handshake_timeout);
  timer_.async_wait([self = Self()](const error_code& error) {
    if (!error && !self->closed() && self->phase_ != Phase::kOpen)
      self->Fail("no answer within the handshake's time");
  });
}

void ShmConnection::Begin() {
  error_code error;
  socket_.non_blocking(true, error);
  if (error) {
    Fail(error.message());
    return;
  }
  returns_ = std::make_shared<Returns>(ContextOf(socket_), Self());
  phase_ = Phase::kChallenge;
  Put({.type = ShmRecordType::kChallenge, .bytes = challenge_.size()}, challenge_);
  Advance();
}

void ShmConnection::Accept(const PeerHello* hello) {
  CHECK(!closed() && phase_ == Phase::kHello, "a hello came");
  phase_ = Phase::kOpen;
  timer_.cancel();
  if (hello == nullptr) return;
  hello_ = *hello;
  SayHello();
}

void ShmConnection::SayHello() {
  const std::vector<std::byte> hello = EncodeHello(hello_);
  const bool dials = side_ == ShmSide::kDials;
  const ShmProof proof = ProveShm(key_, side_, dials ? challenge_ : peer_challenge_,
                                  dials ? peer_challenge_ : challenge_, hello);
  std::vector<std::byte> payload(proof.begin(), proof.end());
  payload.insert(payload.end(), hello.begin(), hello.end());
  Put({.type = ShmRecordType::kHello, .bytes = payload.size()}, payload);
  FlushSoon();
}

void ShmConnection::Close() {
  if (closed()) return;
  owner_ = nullptr;
  if (returns_ != nullptr) returns_->End();
  out_descriptors_.clear();
  timer_.cancel();
  error_code ignored;
  if (lent_.empty()) {
    socket_.close(ignored);
  } else {
    socket_.shutdown(Socket::shutdown_send, ignored);
    Linger();
  }
}

// The peer may be about to read what it was lent before it learns that this side has closed: it
// must not find another sum there. Its own close, or its end, says that it will not.
void ShmConnection::Linger() {
  ssize_t got = 0;
  do {
    got = ::recv(socket_.native_handle(), in_.data(), in_.size(), MSG_DONTWAIT);
  } while (got > 0 || (got < 0 && errno == EINTR));
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    socket_.async_wait(Socket::wait_read, [self = Self()](const error_code&) { self->Linger(); });
    return;
  }
  lent_.clear();
  error_code ignored;
  socket_.close(ignored);
}

bool ShmConnection::End(const PeerLoss& loss) {
  Owner* const owner = owner_;
  Close();
  owner->OnConnectionClosed(*this, loss);
  return false;
}

// ---- Out ----

void ShmConnection::Put(const ShmRecord& record, std::span<const std::byte> payload) {
  const auto head = std::as_bytes(std::span(&record, 1));
  out_.insert(out_.end(), head.begin(), head.end());
  out_.insert(out_.end(), payload.begin(), payload.end());
}

void ShmConnection::Send(Frame frame) {
  if (closed()) return;
  const std::span<const std::byte> payload = frame.payload.view;
  // First what it has read, which makes room for what the peer does when this frame is there.
  PutReturns();
  ShmRecord record = RecordOf(frame.header);
  record.bytes = payload.size();
  FlushSoon();
  if (payload.size() <= kShmInlineMost) return Put(record, payload);

  std::optional<SharedMemory::Place> place = memory_.Find(payload);
  if (!place) {
    MutableBytes copy = staging_.Take(payload.size());
    std::memcpy(copy.view.data(), payload.data(), payload.size());
    place = memory_.Find(copy.view);
    frame.payload.owner = std::move(copy.owner);
  }
  if (!place) {
    // Not within this call, which is the owner's.
    boost::asio::post(socket_.get_executor(), [self = Self()] {
      if (!self->closed()) self->Fail("the kernel gives no shared memory");
    });
    return;
  }
  Announce(place->block);
  record.block = place->block->id();
  record.offset = place->offset;
  lent_.push_back({.owner = std::move(frame.payload.owner), .bytes = payload.size()});
  lent_bytes_ += payload.size();
  Put(record);
}

// Tells the peer of a block before the first payload in it; and of those that are gone.
void ShmConnection::Announce(const std::shared_ptr<const SharedBlock>& block) {
  if (announced_.contains(block->id())) return;
  std::erase_if(announced_, [this](const auto& entry) {
    if (!entry.second.expired()) return false;
    Put({.type = ShmRecordType::kForget, .block = entry.first});
    return true;
  });
  announced_.emplace(block->id(), block);
  out_descriptors_.push_back({.at = out_begin_ + out_.size(), .block = block});
  Put({.type = ShmRecordType::kBlock, .block = block->id(), .bytes = block->view().size()});
}

void ShmConnection::PutReturns() {
  if (returns_ == nullptr) return;
  returns_->MoveTo(returned_);
  for (const std::uint64_t number : returned_)
    Put({.type = ShmRecordType::kReturn, .offset = number});
  returned_.clear();
}

void ShmConnection::FlushSoon() {
  if (std::exchange(flush_posted_, true)) return;
  boost::asio::post(ContextOf(socket_), InMemory(flush_memory_, [self = Self()] {
                      self->flush_posted_ = false;
                      if (!self->closed() && self->phase_ != Phase::kConnecting) self->Advance();
                    }));
}

void ShmConnection::Wait(Socket::wait_type what, Waiting& waiting) {
  if (std::exchange(waiting.on, true)) return;
  socket_.async_wait(what,
                     InMemory(waiting.memory, [self = Self(), &waiting](const error_code& error) {
                       waiting.on = false;
                       if (!self->closed() && !error) self->Advance();
                     }));
}

void ShmConnection::Advance() {
  const auto self = shared_from_this();  // an owner may let go of it in any call
  WriteSome();
  if (!closed()) ReadSome();
}

void ShmConnection::WriteSome() {
  PutReturns();
  if (lent_bytes_ + out_.size() > limits_.send_queue_bytes_most) {
    Fail(Format("{} bytes wait to be read", lent_bytes_ + out_.size()));
    return;
  }
  if (lent_.size() > kLentMost) {
    Fail("the peer keeps what it was lent");
    return;
  }
  while (out_sent_ < out_.size()) {
    const std::uint64_t at = out_begin_ + out_sent_;
    const bool with_descriptor = !out_descriptors_.empty() && out_descriptors_.front().at == at;
    const std::size_t next = with_descriptor ? 1 : 0;
    const std::size_t end = out_descriptors_.size() > next
                                ? static_cast<std::size_t>(out_descriptors_[next].at - out_begin_)
                                : out_.size();
    iovec part{.iov_base = out_.data() + out_sent_, .iov_len = end - out_sent_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    if (with_descriptor) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      const int descriptor = out_descriptors_.front().block->descriptor();
      std::memcpy(CMSG_DATA(head), &descriptor, sizeof(descriptor));
    }
    const ssize_t sent = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      if (with_descriptor) out_descriptors_.pop_front();
      out_sent_ += static_cast<std::size_t>(sent);
    } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return Wait(Socket::wait_write, writable_);
    } else if (errno != EINTR) {
      Fail(std::generic_category().message(errno));
      return;
    }
  }
  out_begin_ += out_.size();
  out_.clear();
  out_sent_ = 0;
}

// ---- In ----

void ShmConnection::ReadSome() {
  turn_bytes_ = 0;
  do {
    if (!TakeRecords()) return;
  } while (Receive());
}

bool ShmConnection::Receive() {
  std::copy(in_.begin() + static_cast<std::ptrdiff_t>(in_begin_),
            in_.begin() + static_cast<std::ptrdiff_t>(in_end_), in_.begin());
  in_end_ -= std::exchange(in_begin_, 0);
  iovec part{.iov_base = in_.data() + in_end_, .iov_len = in_.size() - in_end_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kDescriptorsMost)> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    Wait(Socket::wait_read, readable_);
    return false;
  }
  if (got < 0) return Fail(std::generic_category().message(errno));
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      in_descriptors_.push_back(descriptor);
    }
  }
  if (got == 0) return Fail("the peer closed the connection");
  // Also when this process may open no more files: then it is not the peer's fault.
  if ((message.msg_flags & MSG_CTRUNC) != 0) return Fail("the kernel withheld descriptors");
  if (in_descriptors_.size() > kDescriptorsMost)
    return Refuse("the peer sent more descriptors than it named");
  in_end_ += static_cast<std::size_t>(got);
  return true;
}

bool ShmConnection::TakeRecords() {
  while (in_end_ - in_begin_ >= sizeof(ShmRecord)) {
    if (turn_bytes_ >= kShmTurnBytes) {
      FlushSoon();
      return false;
    }
    ShmRecord record;
    std::memcpy(&record, in_.data() + in_begin_, sizeof(record));
    std::size_t size = sizeof(record);
    if (record.has_payload()) {
      const std::uint64_t most =
          phase_ == Phase::kOpen ? kShmInlineMost : sizeof(ShmProof) + kHelloBytesMost;
      if (record.bytes > most)
        return Refuse(Format("a record of {} bytes, at most {} are allowed", record.bytes, most));
      size += static_cast<std::size_t>(record.bytes);
    }
    if (in_end_ - in_begin_ < size) return true;
    const auto payload = std::span(in_).subspan(in_begin_, size).subspan(sizeof(record));
    in_begin_ += size;
    turn_bytes_ +=
        static_cast<std::size_t>(record.type == ShmRecordType::kFrame ? record.bytes : 0);
    if (!Take(record, payload)) return false;
  }
  return true;
}

bool ShmConnection::Take(const ShmRecord& record, std::span<const std::byte> payload) {
  const Phase wanted = record.type == ShmRecordType::kChallenge ? Phase::kChallenge
                       : record.type == ShmRecordType::kHello   ? Phase::kHello
                                                                : Phase::kOpen;
  if (phase_ != wanted) return Refuse("the peer does not speak this protocol");
  switch (record.type) {
    case ShmRecordType::kChallenge:
      if (payload.size() != peer_challenge_.size()) return Refuse("a challenge of another size");
      std::ranges::copy(payload, peer_challenge_.begin());
      phase_ = Phase::kHello;
      if (side_ == ShmSide::kDials) SayHello();
      return true;
    case ShmRecordType::kHello:
      return TakeHello(payload);
    case ShmRecordType::kBlock:
      return TakeBlock(record);
    case ShmRecordType::kForget:
      if (blocks_.erase(record.block) == 0)
        return Refuse("the peer forgot a block that it never gave");
      return true;
    case ShmRecordType::kFrame:
      return TakeFrame(record, payload);
    case ShmRecordType::kReturn:
      return TakeReturn(record.offset);
  }
  return Refuse("the peer does not speak this protocol");
}

bool ShmConnection::TakeHello(std::span<const std::byte> payload) {
  if (payload.size() < sizeof(ShmProof)) return Refuse("the peer's hello is malformed");
  const auto said = payload.subspan(sizeof(ShmProof));
  const bool dials = side_ == ShmSide::kDials;
  const ShmProof proof =
      ProveShm(key_, dials ? ShmSide::kAccepts : ShmSide::kDials,
               dials ? challenge_ : peer_challenge_, dials ? peer_challenge_ : challenge_, said);
  if (!SameSecret(TextOf(payload.first(proof.size())), TextOf(proof)))
    return Refuse("the peer did not prove that it has the peers' key");
  const Result<PeerHello> hello = DecodeHello(said);
  if (!hello) return Refuse(hello.error().message);
  owner_->OnHello(*this, *hello);
  return !closed();
}

bool ShmConnection::TakeBlock(const ShmRecord& record) {
  if (in_descriptors_.empty()) return Refuse("the peer named a block and gave none");
  const int descriptor = in_descriptors_.front();
  in_descriptors_.pop_front();
  auto mapped = MappedBlock::Map(descriptor, record.bytes);
  ::close(descriptor);
  if (!mapped) return Fail(mapped.error().message);
  if (record.block == 0 || blocks_.size() >= kBlocksMost ||
      !blocks_.emplace(record.block, *std::move(mapped)).second)
    return Refuse("the peer gave a block twice, or too many");
  return true;
}

bool ShmConnection::TakeFrame(const ShmRecord& record, std::span<const std::byte> payload) {
  const std::optional<FrameHeader> header = HeaderOf(record);
  if (!header) return Refuse(Format("frame kind {} is not known", record.kind));
  Frame frame{.header = *header, .payload = {}};
  if (record.block != 0) {
    if (!TakeLent(record, frame)) return false;
  } else if (!payload.empty()) {
    MutableBytes space = owner_->PlaceFor(*this, *header, payload.size());
    if (space.view.empty()) space = pool_.Take(payload.size());
    std::ranges::copy(payload, space.view.begin());
    frame.payload = {.owner = std::move(space.owner), .view = space.view};
  }
  owner_->OnConnectionFrame(*this, std::move(frame));
  return !closed();
}

bool ShmConnection::TakeLent(const ShmRecord& record, Frame& frame) {
  const auto found = blocks_.find(record.block);
  if (found == blocks_.end()) return Refuse("a payload in a block that the peer never gave");
  const std::span<const std::byte> block = found->second->view();
  if (record.bytes == 0 || record.bytes > limits_.payload_bytes_most ||
      record.offset > block.size() || record.bytes > block.size() - record.offset)
    return Refuse(Format("a payload of {} bytes at {} in a block of {}", record.bytes,
                         record.offset, block.size()));
  const auto view = block.subspan(static_cast<std::size_t>(record.offset),
                                  static_cast<std::size_t>(record.bytes));
  const std::uint64_t number = ++last_borrowed_;
  if (frame.header.kind == FrameKind::kNode || frame.header.kind == FrameKind::kRoot) {
    std::shared_ptr<const std::byte> borrowed(
        view.data(),
        [block = found->second, returns = returns_, number](const std::byte*) {
          returns->Add(number);
        },
        borrowers_);
    frame.payload = {.owner = std::move(borrowed), .view = view};
    return true;
  }
  MutableBytes copy = pool_.Take(view.size());
  std::memcpy(copy.view.data(), view.data(), view.size());
  returns_->Add(number);
  frame.payload = {.owner = std::move(copy.owner), .view = copy.view};
  return true;
}

bool ShmConnection::TakeReturn(std::uint64_t number) {
  const std::uint64_t place = number - first_lent_;  // far too large for one before
  if (place >= lent_.size() || lent_[place].bytes == 0)
    return Refuse("the peer returned what it was not lent");
  lent_bytes_ -= lent_[place].bytes;
  lent_[place] = {};
  for (; !lent_.empty() && lent_.front().bytes == 0; ++first_lent_) lent_.take_front();
  return true;
}

}  // namespace pliant
