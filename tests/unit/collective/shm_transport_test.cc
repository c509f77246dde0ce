// The properties of shared memory beyond the common contract: nothing is copied, and nothing that a
// peer sends is trusted.

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/real_event_loop.h"
#include "tests/unit/collective/transport_world.h"
#include "trainer/collective/connection_driver.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/shm_frame_codec.h"
#include "trainer/collective/shm_rendezvous.h"
#include "trainer/collective/socket_transport.h"

namespace pliant {
namespace {

using testing::HasSubstr;

TEST(SharedMemory, KnowsWhatItGave) {
  SharedMemory memory;
  auto first = memory.Allocate(10'000);
  const auto second = memory.Allocate(64);
  const auto place = memory.Find({first.get() + 100, 9'900});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->offset, 100U);
  EXPECT_NE(place->block->id(), memory.Find({second.get(), 64})->block->id());
  EXPECT_FALSE(memory.Find({first.get() + 100, 9'901})) << "beyond the end of the block";
  std::vector<std::byte> heap(100);
  EXPECT_FALSE(memory.Find(heap));
  const std::byte* const was = first.get();
  first.reset();
  EXPECT_FALSE(memory.Find({was, 1}));
}

TEST(SharedMemory, IsOfTheHeapWhereTheKernelGivesNone) {
  bool gives = false;
  SharedMemory memory([&](std::uint64_t id, std::size_t bytes) {
    return gives ? SharedBlock::Make(id, bytes) : Fail(ErrorCode::kUnavailable, "not here");
  });
  const Status probed = memory.Probe();
  ASSERT_FALSE(probed);
  EXPECT_EQ(probed.error().message, "not here");
  const auto heap = memory.Allocate(100);
  std::memset(heap.get(), 7, 100);
  EXPECT_FALSE(memory.Find({heap.get(), 100}));
  EXPECT_EQ(memory.refusal(), "not here");
  gives = true;
  const auto shared = memory.Allocate(100);
  EXPECT_TRUE(memory.Find({shared.get(), 100}));
  EXPECT_EQ(memory.refusal(), "") << "the kernel has memory again";
}

TEST(MappedBlock, RefusesWhatCanShrink) {
  const int descriptor = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(descriptor, 4096), 0);
  EXPECT_FALSE(MappedBlock::Map(descriptor, 4096));
  ::close(descriptor);
  const auto block = SharedBlock::Make(1, 4096);
  ASSERT_TRUE(block);
  EXPECT_NE(::ftruncate((*block)->descriptor(), 0), 0) << "the kernel enforces the seal";
  EXPECT_TRUE(MappedBlock::Map((*block)->descriptor(), 4096));
  EXPECT_FALSE(MappedBlock::Map((*block)->descriptor(), 4097));
  EXPECT_FALSE(MappedBlock::Map((*block)->descriptor(), 0));
}

TEST(ShmRendezvous, IsTheSameForAllWhoOpenTheFolder) {
  const auto folder = std::filesystem::temp_directory_path();
  const auto place = ShmRendezvous::Open(folder);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->tag(), ShmRendezvous::Open(folder / ".")->tag());
  EXPECT_NE(place->tag(), ShmRendezvous::Open("/")->tag());
  EXPECT_NE(place->PathOf(Learner(1)), place->PathOf(Learner(2)));
  EXPECT_FALSE(ShmRendezvous::Open(folder / "absent"));
  EXPECT_FALSE(ShmRendezvous::Open("/" + std::string(100, 'x')));
}

// Two learners that share a folder; each has memory of its own.
class ShmTransportTest : public testing::Test {
 protected:
  ShmTransportTest() {
    std::string name = std::filesystem::temp_directory_path() / "pliant-shm-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~ShmTransportTest() override { std::filesystem::remove_all(folder_); }

  struct End final : PeerHandler {
    // Makes a block unless the test simulates a kernel that refuses.
    Result<std::shared_ptr<const SharedBlock>> Make(std::uint64_t id, std::size_t bytes) const {
      if (!kernel_gives) return Fail(ErrorCode::kUnavailable, "memfd_create: too many open files");
      return SharedBlock::Make(id, bytes);
    }
    void OnPeerConnected(const LearnerId&) override { connected = true; }
    void OnFrame(const LearnerId&, Frame frame) override { frames.push_back(std::move(frame)); }
    void OnPeerLost(const LearnerId&, const PeerLoss& loss) override { lost = loss.reason; }

    bool kernel_gives = true;
    SharedMemory memory{[this](std::uint64_t id, std::size_t bytes) { return Make(id, bytes); }};
    std::unique_ptr<PeerTransport> transport;
    bool connected = false;
    std::vector<Frame> frames;
    std::optional<std::string> lost;
  };

  std::unique_ptr<End> NewEnd(int number, const std::string& folder, std::string peer_key = "a",
                              bool kernel_gives = true) {
    auto end = std::make_unique<End>();
    end->kernel_gives = kernel_gives;
    auto made = MakeSocketTransport(loop_, {.self = Learner(number),
                                            .peer_key = std::move(peer_key),
                                            .shared_memory_folder = folder,
                                            .shared_memory = &end->memory});
    EXPECT_TRUE(made);
    end->transport = *std::move(made);
    end->transport->SetHandler(end.get());
    return end;
  }
  void Connect(End& a, End& b) {
    a.transport->Connect({.id = Learner(2), .address = b.transport->address()});
    b.transport->Connect({.id = Learner(1), .address = a.transport->address()});
  }
  bool RunUntil(const std::function<bool()>& done) {
    const TimePoint end = loop_.Now() + std::chrono::seconds(20);
    while (!done() && loop_.Now() < end) {
      loop_.context().restart();
      loop_.context().run_one_for(std::chrono::milliseconds(100));
    }
    return done();
  }
  static Frame Gradient(SharedMemory& memory, std::size_t bytes, FrameKind kind) {
    const auto owner = memory.Allocate(bytes);
    std::memset(owner.get(), 7, bytes);
    return {.header = {.kind = kind}, .payload = {.owner = owner, .view = {owner.get(), bytes}}};
  }

  RealEventLoop loop_;
  std::string folder_;
};

constexpr std::size_t kLarge = std::size_t{1} << 20;

TEST_F(ShmTransportTest, AGradientIsReadWhereItLiesAndReturnedWhenItWasRead) {
  const auto a = NewEnd(1, folder_);
  const auto b = NewEnd(2, folder_);
  Connect(*a, *b);
  ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
  Frame frame = Gradient(a->memory, kLarge, FrameKind::kNode);
  std::byte* const written = const_cast<std::byte*>(frame.payload.view.data());
  const std::weak_ptr<const void> kept = frame.payload.owner;
  a->transport->Send(Learner(2), std::move(frame));
  ASSERT_TRUE(RunUntil([&] { return !b->frames.empty(); }));
  EXPECT_TRUE(std::ranges::all_of(b->frames[0].payload.view,
                                  [](std::byte byte) { return byte == std::byte{7}; }));
  written[5] = std::byte{9};
  EXPECT_EQ(b->frames[0].payload.view[5], std::byte{9}) << "it is the same memory";
  EXPECT_FALSE(kept.expired());
  b->frames.clear();
  EXPECT_TRUE(RunUntil([&] { return kept.expired(); }));
}

TEST_F(ShmTransportTest, PayloadsReturnInAnyOrder) {
  const auto a = NewEnd(1, folder_);
  const auto b = NewEnd(2, folder_);
  Connect(*a, *b);
  ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
  std::vector<std::weak_ptr<const void>> kept;
  for (int i = 0; i < 3; ++i) {
    Frame frame = Gradient(a->memory, kLarge, FrameKind::kNode);
    kept.push_back(frame.payload.owner);
    a->transport->Send(Learner(2), std::move(frame));
  }
  ASSERT_TRUE(RunUntil([&] { return b->frames.size() == 3; }));
  for (const std::size_t next : {1U, 0U, 2U}) {
    EXPECT_FALSE(kept[next].expired());
    b->frames[next].payload = {};
    EXPECT_TRUE(RunUntil([&] { return kept[next].expired(); })) << next;
  }
  EXPECT_FALSE(a->lost);
}

TEST_F(ShmTransportTest, OtherPayloadsAreTheReadersOwn) {
  const auto a = NewEnd(1, folder_);
  const auto b = NewEnd(2, folder_);
  Connect(*a, *b);
  ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
  for (int number = 1; number <= static_cast<int>(kFrameKindLast); ++number) {
    SCOPED_TRACE(number);
    const auto kind = static_cast<FrameKind>(number);
    Frame frame = Gradient(a->memory, kLarge, kind);
    std::byte* const written = const_cast<std::byte*>(frame.payload.view.data());
    const std::shared_ptr<const void> owner = frame.payload.owner;
    a->transport->Send(Learner(2), std::move(frame));
    ASSERT_TRUE(RunUntil([&] { return !b->frames.empty(); }));
    const std::vector<Frame> frames = std::exchange(b->frames, {});
    written[5] = std::byte{9};
    const bool in_place = kind == FrameKind::kNode || kind == FrameKind::kRoot;
    EXPECT_EQ(frames[0].payload.view[5], in_place ? std::byte{9} : std::byte{7});
  }
}

TEST_F(ShmTransportTest, AReceivedFrameOutlivesBothEnds) {
  auto a = NewEnd(1, folder_);
  auto b = NewEnd(2, folder_);
  Connect(*a, *b);
  ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
  a->transport->Send(Learner(2), Gradient(a->memory, kLarge, FrameKind::kNode));
  ASSERT_TRUE(RunUntil([&] { return !b->frames.empty(); }));
  const std::vector<Frame> frames = std::move(b->frames);
  a.reset();
  ASSERT_TRUE(RunUntil([&] { return b->lost.has_value(); }));
  b.reset();
  EXPECT_EQ(frames[0].payload.view.back(), std::byte{7});
}

// A stopped peer may read lent memory long after this side has closed.
TEST_F(ShmTransportTest, LentMemoryIsKeptUntilThePeerHasClosedToo) {
  const auto a = NewEnd(1, folder_);
  const auto b = NewEnd(2, folder_);
  Connect(*a, *b);
  ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
  Frame frame = Gradient(a->memory, kLarge, FrameKind::kRoot);
  const std::weak_ptr<const void> kept = frame.payload.owner;
  a->transport->Send(Learner(2), std::move(frame));
  ASSERT_TRUE(RunUntil([&] { return !b->frames.empty(); }));
  a->transport->Disconnect(Learner(2));
  EXPECT_FALSE(kept.expired());
  ASSERT_TRUE(RunUntil([&] { return b->lost.has_value(); }));
  EXPECT_TRUE(RunUntil([&] { return kept.expired(); }));
}

TEST_F(ShmTransportTest, WithoutACommonFolderTcpCarries) {
  for (const std::string& other : {std::string(), std::string("/tmp")}) {
    const auto a = NewEnd(1, folder_);
    const auto b = NewEnd(2, other);
    Connect(*a, *b);
    ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
  }
}

TEST_F(ShmTransportTest, TcpCarriesWhereTheSocketIsGone) {
  const auto a = NewEnd(1, folder_);
  const auto b = NewEnd(2, folder_);
  for (const auto& entry : std::filesystem::directory_iterator(folder_))
    std::filesystem::remove(entry.path());
  Connect(*a, *b);
  EXPECT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
}

// At whichever end shared memory fails, a large payload, which needs it, arrives over TCP.
TEST_F(ShmTransportTest, WithoutMemoryToShareTcpCarries) {
  for (const int without : {1, 2}) {
    SCOPED_TRACE(without);
    const auto a = NewEnd(1, folder_, "a", /*kernel_gives=*/without != 1);
    const auto b = NewEnd(2, folder_, "a", /*kernel_gives=*/without != 2);
    const auto& end = without == 1 ? a : b;
    EXPECT_EQ(end->transport->address().find(";shm="), std::string::npos);
    Connect(*a, *b);
    ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
    a->transport->Send(Learner(2), Gradient(a->memory, kLarge, FrameKind::kNode));
    b->transport->Send(Learner(1), Gradient(b->memory, kLarge, FrameKind::kNode));
    EXPECT_TRUE(RunUntil([&] { return !a->frames.empty() && !b->frames.empty(); }));
    EXPECT_FALSE(a->lost || b->lost);
  }
}

// This costs one connection, not one after another.
TEST_F(ShmTransportTest, AnEndWithoutSharedMemoryContinuesOverTcp) {
  for (const int without : {1, 2}) {
    SCOPED_TRACE(without);
    const auto a = NewEnd(1, folder_);
    const auto b = NewEnd(2, folder_);
    Connect(*a, *b);
    ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
    End& from = without == 1 ? *a : *b;
    End& to = without == 1 ? *b : *a;
    const LearnerId id = Learner(without == 1 ? 2 : 1);
    from.kernel_gives = false;
    from.transport->Send(id, Gradient(from.memory, kLarge, FrameKind::kNode));
    ASSERT_TRUE(RunUntil([&] { return a->lost && b->lost; }));
    EXPECT_THAT(*from.lost, HasSubstr("no shared memory"));
    a->connected = b->connected = false;
    a->lost = b->lost = std::nullopt;
    Connect(*a, *b);
    ASSERT_TRUE(RunUntil([&] { return a->connected && b->connected; }));
    from.transport->Send(id, Gradient(from.memory, kLarge, FrameKind::kNode));
    EXPECT_TRUE(RunUntil([&] { return !to.frames.empty(); }));
    EXPECT_FALSE(a->lost || b->lost);
  }
}

TEST_F(ShmTransportTest, AnotherKeyIsNotLetIn) {
  const auto a = NewEnd(1, folder_, "one");
  const auto b = NewEnd(2, folder_, "another");
  Connect(*a, *b);
  const TimePoint end = loop_.Now() + std::chrono::milliseconds(300);
  RunUntil([&] { return loop_.Now() > end; });
  EXPECT_FALSE(a->connected);
  EXPECT_FALSE(b->connected);
}

// One end of a connection whose peer is the test, which sends what no learner would.
class HostilePeerTest : public testing::Test, public ConnectionDriver::Owner {
 protected:
  void OnHello(ConnectionDriver& connection, const PeerHello& hello) override {
    connection.Accept(std::make_shared<const LearnerId>(hello.from), nullptr);
    open_ = true;
  }
  MutableBytes ReceiveBufferFor(const ConnectionDriver&, const FrameHeader&, std::size_t) override {
    return {};
  }
  void OnConnectionFrame(ConnectionDriver&, Frame frame) override {
    frames_.push_back(std::move(frame));
  }
  void OnConnectionClosed(ConnectionDriver&, const PeerLoss& loss) override { loss_ = loss; }

  // Opens the connection as a learner with the right key does.
  void Open() {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    peer_ = sockets[1];
    using boost::asio::local::stream_protocol;
    stream_protocol::socket socket(loop_.context(), stream_protocol(), sockets[0]);
    connection_ = std::make_shared<ConnectionDriver>(
        std::move(socket), *this, std::chrono::seconds(5),
        [this](int connected, std::function<void()> wake) {
          return std::make_unique<ShmFrameCodec>(
              connected,
              ConnectionLimits{.max_payload_bytes = kLarge,
                               .max_send_queue_bytes = 4 * kLarge,
                               .max_unacknowledged = {}},
              pool_, memory_, key_, ShmSide::kAccepts, std::move(wake));
        });
    connection_->Serve();
    struct {
      ShmRecord record;
      ShmChallenge challenge;
    } first;
    ASSERT_EQ(::recv(peer_, &first, sizeof(first), MSG_WAITALL), ssize_t{sizeof(first)});
    const ShmChallenge mine = DrawShmChallenge();
    Say({.type = ShmRecordType::kChallenge, .bytes = mine.size()}, mine);
    const std::vector<std::byte> hello = EncodeHello({.from = Learner(2), .to = Learner(1)});
    const ShmProof proof = ProveShm(key_, ShmSide::kDials, mine, first.challenge, hello);
    std::vector<std::byte> payload(proof.begin(), proof.end());
    payload.insert(payload.end(), hello.begin(), hello.end());
    Say({.type = ShmRecordType::kHello, .bytes = payload.size()}, payload);
    Run();
    ASSERT_TRUE(open_);
  }
  void TearDown() override {
    frames_.clear();
    if (connection_ != nullptr) connection_->Close();
    ::close(peer_);
  }

  void Say(const ShmRecord& record, std::span<const std::byte> payload = {}, int descriptor = -1) {
    std::vector<std::byte> bytes(sizeof(record));
    std::memcpy(bytes.data(), &record, sizeof(record));
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
    if (descriptor >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(head), &descriptor, sizeof(descriptor));
    }
    ::sendmsg(peer_, &message, MSG_NOSIGNAL);
  }
  void Run() {
    loop_.context().restart();
    loop_.context().run_for(std::chrono::milliseconds(20));
  }
  static ShmRecord Lent(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes) {
    return {.kind = static_cast<std::uint32_t>(FrameKind::kNode),
            .block = block,
            .offset = offset,
            .bytes = bytes};
  }

  RealEventLoop loop_;
  SharedMemory memory_;
  BytePool pool_{kLarge};
  const ShmKey key_ = ShmKeyOf("a key");
  std::shared_ptr<ConnectionDriver> connection_;
  int peer_ = -1;
  bool open_ = false;
  std::vector<Frame> frames_;
  PeerLoss loss_;
};

TEST_F(HostilePeerTest, ItsPlacesAreChecked) {
  struct Case {
    const char* what;
    ShmRecord record;
    std::string reason;
  };
  const Case cases[] = {
      {"beyond the end", Lent(1, 4000, 97), "in a block of 4096"},
      {"an offset beyond the end", Lent(1, 4097, 1), "in a block of 4096"},
      {"a sum that wraps around", Lent(1, 64, UINT64_MAX - 32), "in a block of 4096"},
      {"nothing", Lent(1, 0, 0), "in a block of 4096"},
      {"another block", Lent(2, 0, 64), "never gave"},
      {"a kind that is none", {.kind = 99, .block = 1, .bytes = 64}, "not known"},
      {"a record that is none", {.type = ShmRecordType{7}}, "protocol"},
      {"a second hello", {.type = ShmRecordType::kHello}, "protocol"},
      {"a long inline payload",
       {.kind = 1, .bytes = kMaxShmInline + 1},
       "at most 32768 are allowed"},
      {"a return of nothing", {.type = ShmRecordType::kReturn, .offset = 1}, "not lent"},
      {"a block without memory",
       {.type = ShmRecordType::kBlock, .block = 2, .bytes = 64},
       "without its descriptor"},
      {"an unknown block forgotten", {.type = ShmRecordType::kForget, .block = 2}, "never gave"},
  };
  const auto block = SharedBlock::Make(1, 4096);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Open();
    Say({.type = ShmRecordType::kBlock, .block = 1, .bytes = 4096}, {}, (*block)->descriptor());
    Say(Lent(1, 0, 4096));
    Run();
    ASSERT_EQ(frames_.size(), 1U) << loss_.reason;
    Say(c.record);
    Run();
    EXPECT_TRUE(connection_->closed());
    EXPECT_THAT(loss_.reason, HasSubstr(c.reason));
    EXPECT_EQ(frames_.size(), 1U);
    TearDown();
  }
}

TEST_F(HostilePeerTest, ItsMemoryIsChecked) {
  const int shrinks = ::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(::ftruncate(shrinks, 4096), 0);
  const auto block = SharedBlock::Make(1, 4096);
  const std::pair<int, std::uint64_t> cases[] = {
      {shrinks, 4096}, {(*block)->descriptor(), 4097}, {(*block)->descriptor(), 0}, {0, 64}};
  for (const auto& [descriptor, bytes] : cases) {
    Open();
    Say({.type = ShmRecordType::kBlock, .block = 1, .bytes = bytes}, {}, descriptor);
    Run();
    EXPECT_TRUE(connection_->closed());
    EXPECT_THAT(loss_.reason, HasSubstr("a block"));
    TearDown();
  }
  ::close(shrinks);
}

TEST_F(HostilePeerTest, ItsDescriptorsAreNotHoarded) {
  Open();
  const auto block = SharedBlock::Make(1, 4096);
  Say({.type = ShmRecordType::kBlock, .block = 1, .bytes = 4096}, {}, (*block)->descriptor());
  for (int i = 0; i < 20; ++i) Say(Lent(1, 0, 64), {}, (*block)->descriptor());
  Run();
  EXPECT_TRUE(connection_->closed());
  EXPECT_THAT(loss_.reason, HasSubstr("descriptors"));
}

// A process that may open no more files does not get the descriptor that an honest peer sent.
TEST_F(HostilePeerTest, WithheldDescriptorsEndTheConnection) {
  Open();
  const auto block = SharedBlock::Make(1, 4096);
  Say({.type = ShmRecordType::kBlock, .block = 1, .bytes = 4096}, {}, (*block)->descriptor());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  Run();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(connection_->closed());
  EXPECT_THAT(loss_.reason, HasSubstr("withheld descriptors"));
}

TEST_F(HostilePeerTest, ItMayNotKeepEverythingThatItWasLent) {
  Open();
  const std::vector<std::byte> payload(kLarge);
  for (int i = 0; i < 3; ++i) connection_->Send({.payload = {.owner = {}, .view = payload}});
  Run();
  EXPECT_FALSE(connection_->closed()) << loss_.reason;
  connection_->Send({.payload = {.owner = {}, .view = payload}});
  Run();
  EXPECT_TRUE(connection_->closed());
  EXPECT_THAT(loss_.reason, HasSubstr("bytes wait to be read"));
}

TEST_F(HostilePeerTest, ItMayNotGiveAnyNumberOfBlocks) {
  constexpr std::uint64_t kMany = 4096;
  Open();
  const auto block = SharedBlock::Make(1, 4096);
  for (std::uint64_t id = 1; id <= kMany + 1; ++id) {
    ASSERT_FALSE(connection_->closed()) << loss_.reason;
    Say({.type = ShmRecordType::kBlock, .block = id, .bytes = 4096}, {}, (*block)->descriptor());
    loop_.context().restart();
    loop_.context().poll();
  }
  Run();
  EXPECT_TRUE(connection_->closed());
  EXPECT_THAT(loss_.reason, HasSubstr("too many"));
}

TEST_F(HostilePeerTest, ItMayGo) {
  Open();
  ASSERT_EQ(::shutdown(peer_, SHUT_RDWR), 0);
  Run();
  EXPECT_TRUE(connection_->closed());
  EXPECT_THAT(loss_.reason, HasSubstr("closed the connection"));
}

}  // namespace
}  // namespace pliant
