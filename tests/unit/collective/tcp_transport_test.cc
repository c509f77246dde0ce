// Properties that only TCP has: unauthenticated clients, keys, and wrong bytes.
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/real_event_loop.h"
#include "tests/unit/collective/transport_world.h"
#include "tests/unit/no_descriptors.h"
#include "trainer/collective/frame_format.h"
#include "trainer/collective/peer_stream.h"
#include "trainer/collective/socket_transport.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class LoopbackWorld final : public TransportWorld {
 public:
  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self) override {
    SocketTransportOptions mine = options;
    mine.self = self;
    auto made = MakeSocketTransport(real, mine);
    EXPECT_TRUE(made) << made.error();
    return *std::move(made);
  }
  EventLoop& loop() override { return real; }
  bool RunUntil(const std::function<bool()>& done) override {
    const TimePoint end = real.Now() + seconds(20);
    while (!done() && real.Now() < end) {
      real.context().restart();
      real.context().run_one_for(milliseconds(20));
    }
    return done();
  }
  void RunFor(Duration duration) override {
    real.context().restart();
    real.context().run_for(duration);
  }

  RealEventLoop real;
  SocketTransportOptions options;
};

// A socket controlled by the test.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    EXPECT_EQ(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr), 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
  }
  ~RawPeer() { ::close(socket_); }

  // Its socket in non-blocking mode, for a test that waits in another way.
  int Unblocked() {
    EXPECT_EQ(::fcntl(socket_, F_SETFL, O_NONBLOCK), 0);
    return socket_;
  }

  void Send(std::span<const std::byte> bytes) {
    EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void SendFrame(FrameKind kind, std::span<const std::byte> payload) {
    Send(EncodeFrameHead({.header = {.kind = kind},
                          .payload_bytes = payload.size(),
                          .payload_crc = Crc32c(payload)}));
    if (!payload.empty()) Send(payload);
  }
  // Whether the other side has closed the connection.
  bool Closed() {
    std::byte drain[4096];
    while (true) {
      const ssize_t got = ::recv(socket_, drain, sizeof(drain), MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
      if (got < 0) return false;
      received_ += static_cast<std::size_t>(got);
    }
  }
  std::size_t received() { return Closed(), received_; }

 private:
  int socket_;
  std::size_t received_ = 0;
};

class TcpTransportTest : public testing::Test {
 protected:
  // A raw peer that was accepted as learner 9.
  std::unique_ptr<RawPeer> JoinRaw(Recorder& learner) {
    learner.transport->Connect({.id = Learner(9), .address = "127.0.0.1:1"});
    auto raw = std::make_unique<RawPeer>(learner.transport->address());
    raw->SendFrame(kHelloKind, EncodeHello({.from = Learner(9), .to = learner.id}));
    EXPECT_TRUE(world_.RunUntil([&] { return learner.transport->Connected(Learner(9)); }));
    return raw;
  }

  LoopbackWorld world_;
};

TEST_F(TcpTransportTest, TakesFramesFromWhoeverSpeaksTheProtocol) {
  Recorder learner(world_, Learner(1));
  const auto raw = JoinRaw(learner);
  const auto payload = std::as_bytes(std::span("gradient"));
  raw->SendFrame(FrameKind::kNode, payload);
  raw->SendFrame(FrameKind::kTrailer, {});
  ASSERT_TRUE(world_.RunUntil([&] { return learner.frames.size() == 2; }));
  EXPECT_TRUE(std::ranges::equal(learner.frames[0].second.payload.view, payload));
}

TEST_F(TcpTransportTest, TakesAFrameByteByByte) {
  Recorder learner(world_, Learner(1));
  const auto raw = JoinRaw(learner);
  const auto payload = std::as_bytes(std::span("abc"));
  std::vector<std::byte> bytes;
  const FrameHead head = EncodeFrameHead(
      {.header = {.kind = FrameKind::kNode}, .payload_bytes = 4, .payload_crc = Crc32c(payload)});
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  for (const std::byte& byte : bytes) {
    raw->Send({&byte, 1});
    world_.RunFor(milliseconds(1));
  }
  ASSERT_TRUE(world_.RunUntil([&] { return learner.frames.size() == 1; }));
  EXPECT_TRUE(std::ranges::equal(learner.frames[0].second.payload.view, payload));
}

TEST_F(TcpTransportTest, DropsAConnectionWithBytesThatAreWrong) {
  const auto payload = std::as_bytes(std::span("gradient"));
  struct Case {
    std::string name;
    std::string reason;
    std::function<void(RawPeer&)> send;
  };
  const Case cases[] = {
      {"another protocol", "does not speak this protocol",
       [](RawPeer& raw) {
         const std::string text(100, 'G');
         raw.Send(std::as_bytes(std::span(text)));
       }},
      {"a damaged head", "head of a frame",
       [](RawPeer& raw) {
         FrameHead head = EncodeFrameHead({.header = {.kind = FrameKind::kNode}});
         head[20] ^= std::byte{1};
         raw.Send(head);
       }},
      {"a damaged payload", "payload of a frame",
       [&](RawPeer& raw) {
         raw.Send(EncodeFrameHead({.header = {.kind = FrameKind::kNode},
                                   .payload_bytes = payload.size(),
                                   .payload_crc = Crc32c(payload) + 1}));
         raw.Send(payload);
       }},
      {"a frame too large", "a frame of 1048577 bytes, at most 1048576",
       [](RawPeer& raw) {
         raw.Send(EncodeFrameHead(
             {.header = {.kind = FrameKind::kNode}, .payload_bytes = (1 << 20) + 1}));
       }},
      {"a frame larger than memory", "bytes, at most",
       [](RawPeer& raw) {
         raw.Send(
             EncodeFrameHead({.header = {.kind = FrameKind::kNode}, .payload_bytes = UINT64_MAX}));
       }},
      {"a second hello", "out of turn",
       [](RawPeer& raw) { raw.SendFrame(kHelloKind, EncodeHello({.from = Learner(9)})); }},
  };
  world_.options.max_payload_bytes = 1 << 20;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Recorder learner(world_, Learner(1));
    const auto raw = JoinRaw(learner);
    c.send(*raw);
    ASSERT_TRUE(world_.RunUntil([&] { return !learner.lost.empty(); }));
    EXPECT_EQ(learner.lost, std::vector{Learner(9)});
    EXPECT_THAT(learner.losses.front().reason, HasSubstr(c.reason));
    EXPECT_TRUE(learner.frames.empty());
    EXPECT_TRUE(world_.RunUntil([&] { return raw->Closed(); }));
  }
}

TEST_F(TcpTransportTest, DropsAnAuthenticatedConnectionWithFramesThatAreWrong) {
  const std::string peer_key = "the right key";
  const auto payload = std::as_bytes(std::span("gradient"));
  const FrameHeadFields frame{.header = {.kind = FrameKind::kNode},
                              .payload_bytes = payload.size(),
                              .payload_crc = Crc32c(payload)};
  FrameHead damaged = EncodeFrameHead(frame);
  damaged[20] ^= std::byte{1};
  FrameHeadFields of_another = frame;
  ++of_another.payload_crc;
  const struct {
    FrameHead head;
    std::string reason;
  } kCases[] = {{damaged, "head of a frame"},
                {EncodeFrameHead(of_another), "payload of a frame has a wrong checksum"}};
  world_.options.peer_key = peer_key;
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.reason);
    Recorder learner(world_, Learner(1));
    learner.transport->Connect({.id = Learner(9), .address = "127.0.0.1:1"});
    RawPeer raw(learner.transport->address());
    const auto key = TlsKey::FromPeerKey(peer_key);
    ASSERT_TRUE(key);
    const auto stream = key->NewStream(raw.Unblocked(), TlsKey::Side::kDials);
    ASSERT_TRUE(world_.RunUntil([&] { return stream->Handshake().state == IoState::kReady; }));
    const auto say = [&](const FrameHead& head, std::span<const std::byte> bytes) {
      const std::span<const std::byte> parts[] = {head, bytes};
      EXPECT_EQ(stream->Write(parts).bytes, head.size() + bytes.size());
      EXPECT_EQ(stream->Flush().state, IoState::kReady);
    };
    const auto hello = EncodeHello({.from = Learner(9), .to = learner.id});
    say(EncodeFrameHead({.header = {.kind = kHelloKind}, .payload_bytes = hello.size()}), hello);
    ASSERT_TRUE(world_.RunUntil([&] { return learner.transport->Connected(Learner(9)); }));
    say(c.head, payload);
    ASSERT_TRUE(world_.RunUntil([&] { return !learner.losses.empty(); }));
    EXPECT_THAT(learner.losses.front().reason, HasSubstr(c.reason));
    EXPECT_TRUE(learner.frames.empty());
  }
}

TEST_F(TcpTransportTest, APeerThatEndsInTheMiddleOfAFrameIsLostAtOnce) {
  Recorder learner(world_, Learner(1));
  auto raw = JoinRaw(learner);
  const FrameHead head =
      EncodeFrameHead({.header = {.kind = FrameKind::kNode}, .payload_bytes = 9});
  raw->Send(head);
  world_.RunFor(milliseconds(10));
  raw.reset();
  ASSERT_TRUE(world_.RunUntil([&] { return !learner.lost.empty(); }));
  EXPECT_FALSE(learner.losses.front().reason.empty());
  EXPECT_TRUE(learner.frames.empty());
}

TEST_F(TcpTransportTest, RefusesStrangers) {
  Recorder learner(world_, Learner(1));
  learner.transport->Connect({.id = Learner(9), .address = "127.0.0.1:1"});
  const PeerHello hellos[] = {
      {.from = Learner(8), .to = learner.id},  // not connected by this learner
      {.from = Learner(9), .to = Learner(2)},  // addressed to another learner
      {.from = Learner(0), .to = learner.id},  // it has the smaller id, so it must not dial
      {.from = learner.id, .to = learner.id}, {.protocol = 2, .from = Learner(9), .to = learner.id},
  };
  for (const PeerHello& hello : hellos) {
    RawPeer raw(learner.transport->address());
    raw.SendFrame(kHelloKind, EncodeHello(hello));
    EXPECT_TRUE(world_.RunUntil([&] { return raw.Closed(); }));
    EXPECT_EQ(raw.received(), 0U) << "it receives nothing";
  }
  RawPeer impatient(learner.transport->address());
  impatient.SendFrame(FrameKind::kNode, {});
  EXPECT_TRUE(world_.RunUntil([&] { return impatient.Closed(); }));
  RawPeer chatty(learner.transport->address());
  chatty.Send(EncodeFrameHead({.header = {.kind = kHelloKind}, .payload_bytes = 1 << 20}));
  EXPECT_TRUE(world_.RunUntil([&] { return chatty.Closed(); }));
  EXPECT_TRUE(learner.connected.empty());
  EXPECT_TRUE(learner.lost.empty());
}

TEST_F(TcpTransportTest, DoesNotWaitForStrangersForEver) {
  world_.options.handshake_timeout = milliseconds(50);
  Recorder learner(world_, Learner(1));
  RawPeer silent(learner.transport->address());
  EXPECT_TRUE(world_.RunUntil([&] { return silent.Closed(); }));
}

TEST_F(TcpTransportTest, StrangersThatSayNothingKeepNoLearnerOut) {
  world_.options.handshake_timeout = seconds(100);
  Recorder a(world_, Learner(1));
  std::list<RawPeer> silent;
  for (int i = 0; i < 300; ++i) {
    silent.emplace_back(a.transport->address());
    world_.RunFor({});
  }
  Recorder b(world_, Learner(2));
  a.Connect(b);
  b.Connect(a);
  EXPECT_TRUE(world_.RunUntil([&] { return a.ConnectedTo(b) && b.ConnectedTo(a); }));
  EXPECT_TRUE(silent.front().Closed()) << "the oldest is closed";
  EXPECT_FALSE(silent.back().Closed());
}

TEST_F(TcpTransportTest, OutOfDescriptorsItAcceptsLater) {
  Recorder learner(world_, Learner(1));
  learner.transport->Connect({.id = Learner(9), .address = "127.0.0.1:1"});
  RawPeer raw(learner.transport->address());
  raw.SendFrame(kHelloKind, EncodeHello({.from = Learner(9), .to = learner.id}));
  testing::internal::CaptureStderr();
  {
    const NoDescriptors none;
    const std::clock_t before = std::clock();
    world_.RunFor(milliseconds(350));
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 5) << "it does not spin";
    EXPECT_TRUE(learner.connected.empty());
  }
  EXPECT_TRUE(world_.RunUntil([&] { return learner.transport->Connected(Learner(9)); }));
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("cannot accept a connection error=\"Too many open files\""));
  EXPECT_EQ(logged.find("cannot accept"), logged.rfind("cannot accept")) << "logged once";
}

TEST_F(TcpTransportTest, AHalfOpenConnectionGivesWayToTheNextDial) {
  Recorder learner(world_, Learner(1));
  const auto first = JoinRaw(learner);
  RawPeer second(learner.transport->address());
  second.SendFrame(kHelloKind, EncodeHello({.from = Learner(9), .to = learner.id}));
  ASSERT_TRUE(world_.RunUntil([&] { return second.Closed(); }));
  EXPECT_EQ(learner.lost, std::vector{Learner(9)}) << "only Connect opens it again";
  EXPECT_TRUE(world_.RunUntil([&] { return first->Closed(); }));
  EXPECT_NE(JoinRaw(learner), nullptr);
  EXPECT_EQ(learner.connected.size(), 2U);
}

TEST_F(TcpTransportTest, APeerThatDoesNotReadIsDropped) {
  world_.options.max_send_queue_bytes = 8 << 20;
  Recorder learner(world_, Learner(1));
  const auto raw = JoinRaw(learner);
  const auto owned = std::make_shared<std::vector<std::byte>>(1 << 20);
  for (int i = 0; i < 40; ++i)
    learner.transport->Send(Learner(9), {.header = {.kind = FrameKind::kState},
                                         .payload = {.owner = owned, .view = *owned}});
  ASSERT_TRUE(world_.RunUntil([&] { return !learner.lost.empty(); }));
  EXPECT_THAT(learner.losses.front().reason, HasSubstr("wait to be sent"));
  EXPECT_EQ(owned.use_count(), 1) << "the transport holds nothing for it";
}

TEST_F(TcpTransportTest, AWrongKeyIsRefused) {
  world_.options.peer_key = "the right key";
  Recorder a(world_, Learner(1));
  world_.options.peer_key = "the wrong key";
  Recorder b(world_, Learner(2));
  a.Connect(b);
  b.Connect(a);
  world_.RunFor(milliseconds(200));
  EXPECT_TRUE(a.connected.empty());
  EXPECT_TRUE(b.connected.empty());

  world_.options.peer_key.clear();
  Recorder plain(world_, Learner(3));
  plain.Connect(a);
  a.Connect(plain);
  world_.RunFor(milliseconds(200));
  EXPECT_TRUE(plain.connected.empty());
  EXPECT_TRUE(a.connected.empty());

  RawPeer raw(a.transport->address());
  raw.SendFrame(kHelloKind, EncodeHello({.from = Learner(3), .to = a.id}));
  EXPECT_TRUE(world_.RunUntil([&] { return raw.Closed(); }));

  world_.options.peer_key = "the right key";
  Recorder c(world_, Learner(4));
  c.Connect(a);
  a.Connect(c);
  EXPECT_TRUE(world_.RunUntil([&] { return a.ConnectedTo(c) && c.ConnectedTo(a); }));
}

TEST_F(TcpTransportTest, WithoutAKeyItServesLoopbackOnly) {
  for (const char* const ip : {"0.0.0.0", "10.1.2.3", "::"}) {
    const auto made = MakeSocketTransport(world_.real, {.self = Learner(1), .listen_ip = ip});
    ASSERT_FALSE(made) << ip;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(made.error().message, HasSubstr("loopback"));
  }
  EXPECT_TRUE(MakeSocketTransport(
      world_.real, {.self = Learner(1), .listen_ip = "0.0.0.0", .peer_key = "a key"}));
}

TEST_F(TcpTransportTest, SaysWhereItIs) {
  const auto made = MakeSocketTransport(
      world_.real, {.self = Learner(1), .advertise_ip = "10.1.2.3", .peer_key = "a key"});
  ASSERT_TRUE(made) << made.error();
  EXPECT_THAT((*made)->address(), testing::MatchesRegex("10\\.1\\.2\\.3:[0-9]+"));
  EXPECT_FALSE(MakeSocketTransport(world_.real, {.self = Learner(1), .listen_ip = "learner-1"}));
}

}  // namespace
}  // namespace pliant
