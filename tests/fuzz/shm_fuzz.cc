// Fuzzes what a peer on the same machine sends over their socket: records, and memory handed over
// between them. The first byte of an input tells whether the peer has already proven that it holds
// the key (bit 0), and how many descriptors it sends (bits 1 and 2). The rest is sent as it is.

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/real_event_loop.h"
#include "tests/fuzz/fuzz_target.h"
#include "trainer/collective/connection_driver.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/shm_frame_codec.h"
#include "trainer/collective/shm_records.h"

namespace pliant {
namespace {

using boost::asio::local::stream_protocol;

constexpr std::size_t kBlockBytes = 4096;                  // size of the peer's block
constexpr std::size_t kMaxPayload = 2048;                  // smaller than the block
constexpr std::size_t kSentBytes = std::size_t{64} << 10;  // too large for the socket
constexpr std::size_t kMaxDescriptors = 3;
constexpr std::uint64_t kBlock = 1;  // the block that the peer has already given
const LearnerId kSelf{.name = "a", .pod_uid = "u", .nonce = 5};
const LearnerId kPeer{.name = "b", .pod_uid = "v", .nonce = 6};

// State shared by all inputs.
struct Machine {
  RealEventLoop loop;
  SharedMemory memory;
  BytePool pool{kBlockBytes};
  const ShmKey key = ShmKeyOf("a key");
  std::shared_ptr<std::byte> sent = memory.Allocate(kSentBytes);
  std::shared_ptr<const SharedBlock> block = *SharedBlock::Make(kBlock, kBlockBytes);
};

Machine& TheMachine() {
  static Machine machine;
  return machine;
}

// The learner's side: accepts everything, reads all of it, and keeps the last frame.
class Listener final : public ConnectionDriver::Owner {
 public:
  void OnHello(ConnectionDriver& connection, const PeerHello&) override {
    const PeerHello answer{.from = kSelf, .to = kPeer};
    connection.Accept(std::make_shared<const LearnerId>(kPeer), &answer);
  }
  MutableBytes ReceiveBufferFor(const ConnectionDriver&, const FrameHeader&, std::size_t) override {
    return {};
  }
  void OnConnectionFrame(ConnectionDriver&, Frame frame) override {
    CHECK(frame.header.kind <= kFrameKindLast, "a kind that is known");
    CHECK(frame.payload.view.size() <= kMaxShmInline, "no more than was agreed on");
    for (const std::byte byte : frame.payload.view) sum_ += std::to_integer<std::uint64_t>(byte);
    bytes_ += frame.payload.view.size();
    last_ = std::move(frame);
  }
  void OnConnectionClosed(ConnectionDriver&, const PeerLoss&) override {}
  void LetGo() {
    CHECK(sum_ <= 255 * bytes_, "every byte was read");
    last_ = {};
  }

 private:
  Frame last_;
  std::uint64_t sum_ = 0;
  std::uint64_t bytes_ = 0;
};

std::string RecordText(const ShmRecord& record) {
  return fuzz::TextOf(std::as_bytes(std::span(&record, 1)));
}

void Say(int socket, std::string_view text, std::size_t descriptors = 0) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  if (descriptors > 0) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors);
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * descriptors);
    const int descriptor = TheMachine().block->descriptor();
    for (std::size_t i = 0; i < descriptors; ++i)
      std::memcpy(CMSG_DATA(head) + i * sizeof(int), &descriptor, sizeof(descriptor));
  }
  (void)::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RunLoop() {
  auto& context = TheMachine().loop.context();
  do {
    context.restart();
  } while (context.poll() > 0);
}

// Opens the connection as a learner with the right key does: it has given a block, and was lent a
// payload.
void Open(int socket, ConnectionDriver& connection) {
  const Machine& machine = TheMachine();
  std::array<char, sizeof(ShmRecord) + sizeof(ShmChallenge)> first{};
  CHECK(::recv(socket, first.data(), first.size(), MSG_WAITALL) == std::ssize(first),
        "a challenge comes first");
  ShmChallenge theirs;
  std::memcpy(theirs.data(), &first[sizeof(ShmRecord)], theirs.size());
  const ShmChallenge mine{};
  Say(socket,
      RecordText({.type = ShmRecordType::kChallenge, .bytes = mine.size()}) + fuzz::TextOf(mine));
  const std::vector<std::byte> hello = EncodeHello({.from = kPeer, .to = kSelf});
  const ShmProof proof = ProveShm(machine.key, ShmSide::kDials, mine, theirs, hello);
  Say(socket, RecordText({.type = ShmRecordType::kHello, .bytes = proof.size() + hello.size()}) +
                  fuzz::TextOf(proof) + fuzz::TextOf(hello));
  Say(socket, RecordText({.type = ShmRecordType::kBlock, .block = kBlock, .bytes = kBlockBytes}),
      /*descriptors=*/1);
  RunLoop();
  connection.Send({.header = {.kind = FrameKind::kNode},
                   .payload = {.owner = machine.sent, .view = {machine.sent.get(), kSentBytes}}});
  RunLoop();
  CHECK(!connection.closed(), "nothing was wrong until now");
}

void RunPeer(std::string_view said, bool proven, std::size_t descriptors) {
  Machine& machine = TheMachine();
  std::array<int, 2> sockets{};
  CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) == 0, "two ends");
  Listener listener;
  auto connection = std::make_shared<ConnectionDriver>(
      stream_protocol::socket(machine.loop.context(), stream_protocol(), sockets[0]), listener,
      std::chrono::seconds(60), [&machine](int socket, std::function<void()> wake) {
        return std::make_unique<ShmFrameCodec>(
            socket,
            ConnectionLimits{.max_payload_bytes = kMaxPayload,
                             .max_send_queue_bytes = 2 * kSentBytes,
                             .max_unacknowledged = {}},
            machine.pool, machine.memory, machine.key, ShmSide::kAccepts, std::move(wake));
      });
  connection->Serve();
  if (proven) Open(sockets[1], *connection);
  if (!said.empty()) Say(sockets[1], said, descriptors);
  RunLoop();
  listener.LetGo();  // the lent payload is returned
  RunLoop();
  ::close(sockets[1]);
  RunLoop();
  CHECK(connection->closed(), "its end is the connection's");
  const std::weak_ptr<ConnectionDriver> watched = connection;
  connection.reset();
  CHECK(watched.expired(), "nothing waits for a peer that is gone");
}

}  // namespace

std::vector<std::string> fuzz::Seeds() {
  const auto lent = [](std::uint64_t block, std::uint64_t offset, FrameKind kind) {
    ShmRecord record = RecordOf({.kind = kind, .membership = {2, 9}, .tick = 7, .node = 3});
    record.block = block;
    record.offset = offset;
    record.bytes = 256;
    return RecordText(record);
  };
  ShmRecord inlined = RecordOf({.kind = FrameKind::kTrailer, .membership = {2, 9}, .tick = 7});
  inlined.bytes = 5;
  const std::string stranger(1, '\0');
  const std::string proven(1, '\1');
  const std::string gives(1, '\3');
  return {stranger + RecordText({.type = ShmRecordType::kChallenge, .bytes = 32}) +
              std::string(32, 'c') + RecordText({.type = ShmRecordType::kHello, .bytes = 40}) +
              std::string(40, 'h'),
          proven + lent(kBlock, 64, FrameKind::kNode) + lent(kBlock, 128, FrameKind::kState),
          proven + RecordText(inlined) + "inner" + lent(kBlock, 0, FrameKind::kRoot),
          proven + RecordText({.type = ShmRecordType::kReturn, .offset = 1}) +
              RecordText({.type = ShmRecordType::kForget, .block = kBlock}),
          gives + RecordText({.type = ShmRecordType::kBlock, .block = 2, .bytes = kBlockBytes}) +
              lent(2, 512, FrameKind::kNode)};
}

}  // namespace pliant

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pliant;
  if (size == 0) return 0;
  const std::size_t first = data[0];
  RunPeer(fuzz::TextOf(data, size).substr(1), /*proven=*/(first & 1U) != 0,
          (first >> 1U) & kMaxDescriptors);
  return 0;
}
