#include "tests/unit/collective/transport_world.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <span>

#include "base/check.h"
#include "base/real_event_loop.h"
#include "base/sim_event_loop.h"
#include "trainer/collective/memory_transport.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/socket_transport.h"

namespace pliant {
namespace {

class MemoryWorld final : public TransportWorld {
 public:
  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self) override {
    return network_.NewTransport(self);
  }
  EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done) override {
    return loop_.RunUntilTrue(done, std::chrono::seconds(60));
  }
  void RunFor(Duration duration) override { loop_.RunFor(duration); }

 private:
  SimEventLoop loop_;
  std::mt19937 random_{5};
  MemoryNetwork network_{loop_, [this](const LearnerId&, const LearnerId&) -> Duration {
                           return std::chrono::microseconds(random_() % 3000);
                         }};
};

class TcpWorld : public TransportWorld {
 public:
  explicit TcpWorld(std::string peer_key) : peer_key_(std::move(peer_key)) {}

  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self) override {
    return NewTransport({.self = self, .peer_key = peer_key_});
  }
  EventLoop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& done) override {
    const TimePoint end = loop_.Now() + std::chrono::seconds(60);
    while (!done() && loop_.Now() < end) {
      loop_.context().restart();
      loop_.context().run_one_for(std::chrono::milliseconds(100));
    }
    return done();
  }
  void RunFor(Duration duration) override {
    loop_.context().restart();
    loop_.context().run_for(duration);
  }

 protected:
  std::unique_ptr<PeerTransport> NewTransport(SocketTransportOptions options) {
    auto transport = MakeSocketTransport(loop_, std::move(options));
    CHECK(transport, "loopback has a free port");
    return *std::move(transport);
  }
  const std::string peer_key_;

 private:
  RealEventLoop loop_;
};

class ShmWorld final : public TcpWorld {
 public:
  ShmWorld() : TcpWorld("a key") {
    std::string name = std::filesystem::temp_directory_path() / "pliant-shm-XXXXXX";
    CHECK(::mkdtemp(name.data()) != nullptr, "a folder for sockets");
    folder_ = name;
  }
  ~ShmWorld() override {
    CHECK(std::filesystem::is_empty(folder_), "a learner that leaves removes its socket");
    std::filesystem::remove(folder_);
  }
  std::unique_ptr<PeerTransport> NewTransport(const LearnerId& self) override {
    return TcpWorld::NewTransport({.self = self,
                                   .peer_key = peer_key_,
                                   .shared_memory_folder = folder_,
                                   .shared_memory = &memory_});
  }

 private:
  std::filesystem::path folder_;
  SharedMemory memory_;
};

}  // namespace

std::unique_ptr<TransportWorld> NewMemoryWorld() { return std::make_unique<MemoryWorld>(); }
std::unique_ptr<TransportWorld> NewPlainTcpWorld() { return std::make_unique<TcpWorld>(""); }
std::unique_ptr<TransportWorld> NewShmWorld() { return std::make_unique<ShmWorld>(); }
std::unique_ptr<TransportWorld> NewTlsWorld() { return std::make_unique<TcpWorld>("a key"); }

LearnerId Learner(int number) {
  return {.name = "digits-1a2b3-" + std::to_string(number),
          .pod_uid = "uid-" + std::to_string(number),
          .nonce = 0xfedcba9876543210U + static_cast<std::uint64_t>(number)};
}

Frame FrameOfTick(Tick tick, std::string_view text) {
  const auto owned = std::make_shared<const std::string>(text);
  return {.header = {.kind = FrameKind::kTrailer,
                     .membership = {.term = 1, .counter = 2},
                     .tick = tick},
          .payload = {.owner = owned, .view = std::as_bytes(std::span(*owned))}};
}

std::string TextOf(const Frame& frame) {
  return {reinterpret_cast<const char*>(frame.payload.view.data()), frame.payload.view.size()};
}

}  // namespace pliant
