#include "trainer/collective/connection_driver.h"

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/real_event_loop.h"

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Records the driver's calls of its codec, and scripts the codec's answers.
struct CodecScript {
  std::vector<std::string> calls;
  std::deque<CodecPause> writes;  // results of WriteSome; when empty, it has nothing to write
  std::function<CodecPause(FrameSink& sink)> read = [](FrameSink&) { return CodecPause::Asked(); };
  bool lends = false;
  std::function<void()> wake;
};

class ScriptedCodec final : public FrameCodec {
 public:
  explicit ScriptedCodec(CodecScript& script) : script_(script) {}
  void SayHello(const PeerHello&) override { script_.calls.emplace_back("hello"); }
  void Open() override { script_.calls.emplace_back("open"); }
  void Put(Frame) override { script_.calls.emplace_back("put"); }
  CodecPause WriteSome() override {
    script_.calls.emplace_back("write");
    if (script_.writes.empty()) return CodecPause::Asked();
    CodecPause pause = std::move(script_.writes.front());
    script_.writes.pop_front();
    return pause;
  }
  CodecPause ReadSome(FrameSink& sink) override {
    script_.calls.emplace_back("read");
    return script_.read(sink);
  }
  bool Close() override {
    script_.calls.emplace_back("close");
    return script_.lends;
  }
  void Release() override { script_.calls.emplace_back("release"); }

 private:
  CodecScript& script_;
};

// A driver whose peer is the test.
class ConnectionDriverTest : public testing::Test, public ConnectionDriver::Owner {
 protected:
  ~ConnectionDriverTest() override {
    if (connection_ != nullptr) connection_->Close();
    connection_.reset();
    if (peer_ >= 0) ::close(peer_);
    Run();
  }

  void OnHello(ConnectionDriver& connection, const PeerHello& hello) override {
    EXPECT_EQ(connection.peer(), nullptr);
    connection.Accept(std::make_shared<const LearnerId>(hello.from),
                      accept_with_ ? &*accept_with_ : nullptr);
    EXPECT_EQ(*connection.peer(), hello.from);
  }
  MutableBytes ReceiveBufferFor(const ConnectionDriver&, const FrameHeader&, std::size_t) override {
    return {};
  }
  void OnConnectionFrame(ConnectionDriver& connection, Frame) override {
    ++frames_;
    if (closes_on_frame_) connection.Close();
  }
  void OnConnectionClosed(ConnectionDriver&, const PeerLoss& loss) override {
    losses_.push_back(loss.reason);
  }

  void Serve(Duration handshake_timeout = std::chrono::seconds(5)) {
    using boost::asio::local::stream_protocol;
    std::array<int, 2> sockets{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
    peer_ = sockets[1];
    connection_ = std::make_shared<ConnectionDriver>(
        stream_protocol::socket(loop_.context(), stream_protocol(), sockets[0]), *this,
        handshake_timeout, [this](int, std::function<void()> wake) {
          script_.wake = std::move(wake);
          return std::make_unique<ScriptedCodec>(script_);
        });
    connection_->Serve();
  }
  void Open() {
    script_.read = [](FrameSink& sink) {
      (void)sink.OnHello({});
      return CodecPause::Asked();
    };
    Serve();
    script_.read = CodecScript().read;
    Run();
    script_.calls.clear();
  }
  void Run() {
    auto& context = loop_.context();
    do {
      context.restart();
    } while (context.poll() > 0);
  }
  void RunUntil(const std::function<bool()>& done) {
    const TimePoint end = loop_.Now() + std::chrono::seconds(20);
    while (!done() && loop_.Now() < end) {
      loop_.context().restart();
      loop_.context().run_one_for(std::chrono::milliseconds(100));
    }
    EXPECT_TRUE(done());
  }
  std::vector<std::string> TakeCalls() { return std::exchange(script_.calls, {}); }

  RealEventLoop loop_;
  CodecScript script_;
  std::shared_ptr<ConnectionDriver> connection_;
  int peer_ = -1;
  std::optional<PeerHello> accept_with_;
  bool closes_on_frame_ = false;
  int frames_ = 0;
  std::vector<std::string> losses_;
};

TEST_F(ConnectionDriverTest, AnAcceptedHelloOpensAndIsAnswered) {
  accept_with_ = PeerHello{};
  script_.read = [](FrameSink& sink) {
    EXPECT_TRUE(sink.OnHello({}));
    return CodecPause::Asked();
  };
  Serve();
  EXPECT_THAT(TakeCalls(), ElementsAre("write", "read", "open", "hello"));
  script_.read = CodecScript().read;
  Run();
  EXPECT_THAT(TakeCalls(), ElementsAre("write", "read")) << "the answer is sent";
}

TEST_F(ConnectionDriverTest, ManyFramesAreWrittenTogether) {
  Open();
  for (int i = 0; i < 3; ++i) connection_->Send({});
  EXPECT_THAT(TakeCalls(), ElementsAre("put", "put", "put"));
  Run();
  EXPECT_THAT(TakeCalls(), ElementsAre("write", "read"));
}

TEST_F(ConnectionDriverTest, TheNextTurnLetsOthersGoFirst) {
  Open();
  script_.writes = {CodecPause::NextTurn()};
  connection_->Send({});
  boost::asio::post(loop_.context(), [this] { script_.calls.emplace_back("other"); });
  Run();
  EXPECT_THAT(TakeCalls(), ElementsAre("put", "write", "read", "other", "write", "read"));
}

TEST_F(ConnectionDriverTest, ItWaitsForTheSocket) {
  struct Case {
    const char* name;
    CodecPause::Until until;
    bool at_once;  // whether an idle socket can be written at once; it can never be read at once
  };
  const Case cases[] = {{"to read", CodecPause::Until::kReadable, false},
                        {"to write", CodecPause::Until::kWritable, true}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Open();
    script_.writes = {{.until = c.until, .reason = {}}};
    connection_->Send({});
    Run();
    if (!c.at_once) {
      EXPECT_THAT(TakeCalls(), ElementsAre("put", "write", "read"));
      EXPECT_EQ(::send(peer_, "x", 1, 0), 1);
      RunUntil([&] { return !script_.calls.empty(); });
      EXPECT_THAT(TakeCalls(), ElementsAre("write", "read"));
    } else {
      EXPECT_THAT(TakeCalls(), ElementsAre("put", "write", "read", "write", "read"));
    }
    connection_->Close();
    ::close(std::exchange(peer_, -1));
  }
}

TEST_F(ConnectionDriverTest, ReportsAFailureOnceAndCloses) {
  Open();
  script_.writes = {CodecPause::Failed("this is why")};
  connection_->Send({});
  connection_->Send({});
  Run();
  EXPECT_THAT(losses_, ElementsAre("this is why"));
  EXPECT_TRUE(connection_->closed());
  EXPECT_THAT(TakeCalls(), ElementsAre("put", "put", "write", "close"));
  connection_->Send({});
  connection_->Close();
  Run();
  EXPECT_THAT(TakeCalls(), IsEmpty());
}

TEST_F(ConnectionDriverTest, WithoutAHelloItEndsAfterItsTime) {
  Serve(std::chrono::milliseconds(10));
  RunUntil([&] { return !losses_.empty(); });
  EXPECT_THAT(losses_, ElementsAre("no answer before the handshake timeout"));
}

TEST_F(ConnectionDriverTest, AnOwnerMayCloseItInAFrame) {
  Open();
  closes_on_frame_ = true;
  script_.read = [](FrameSink& sink) {
    EXPECT_FALSE(sink.OnFrame({}));
    return CodecPause::Asked();
  };
  connection_->Send({});
  const std::weak_ptr<ConnectionDriver> watched = connection_;
  connection_.reset();
  Run();
  EXPECT_EQ(frames_, 1);
  EXPECT_THAT(losses_, IsEmpty()) << "the owner closed it, so it gets no callback";
  EXPECT_TRUE(watched.expired());
}

TEST_F(ConnectionDriverTest, ItIsWokenFromAnyThread) {
  Open();
  std::thread other([this] {
    for (int i = 0; i < 100; ++i) script_.wake();
  });
  other.join();
  Run();
  EXPECT_THAT(TakeCalls(), ElementsAre("write", "read")) << "one turn handles all wake-ups";
  script_.wake();
  Run();
  EXPECT_THAT(TakeCalls(), ElementsAre("write", "read"));
  connection_->Close();
  script_.calls.clear();
  script_.wake();
  connection_.reset();
  script_.wake();
  Run();
  EXPECT_THAT(TakeCalls(), IsEmpty());
}

TEST_F(ConnectionDriverTest, WhileThePeerMayReadMemoryItsEndIsAwaited) {
  Open();
  script_.lends = true;
  connection_->Close();
  Run();
  EXPECT_THAT(TakeCalls(), ElementsAre("close"));
  char byte = 0;
  EXPECT_EQ(::recv(peer_, &byte, 1, MSG_DONTWAIT), 0) << "the peer receives the end of the stream";
  EXPECT_EQ(::send(peer_, "late", 4, MSG_NOSIGNAL), 4);
  Run();
  EXPECT_THAT(TakeCalls(), IsEmpty()) << "late data are not the end of the peer's stream";
  ::close(std::exchange(peer_, -1));
  RunUntil([&] { return !script_.calls.empty(); });
  EXPECT_THAT(TakeCalls(), ElementsAre("release"));
}

TEST_F(ConnectionDriverTest, ReportsADialThatFails) {
  connection_ = std::make_shared<ConnectionDriver>(
      ConnectionDriver::Socket(loop_.context()), *this, std::chrono::seconds(5),
      [](int, auto&&) -> std::unique_ptr<FrameCodec> {
        ADD_FAILURE() << "there is no socket to write to";
        return nullptr;
      });
  connection_->Dial(boost::asio::local::stream_protocol::endpoint("/absent/socket"), {});
  RunUntil([&] { return !losses_.empty(); });
  EXPECT_THAT(losses_, ElementsAre("No such file or directory"));
  EXPECT_TRUE(connection_->closed());
}

}  // namespace
}  // namespace pliant
