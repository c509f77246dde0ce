#include "base/text_stream.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/http_server.h"
#include "base/real_event_loop.h"
#include "tests/unit/raw_client.h"
#include "tests/unit/run_until.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::shared_ptr<const std::string> Text(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// A server on the test's own thread. Each reader first gets `opening`.
class TextStreamTest : public testing::Test {
 protected:
  void Listen(HttpServerOptions options) {
    options.address = "127.0.0.1";
    auto server = HttpServer::Listen(
        loop_, options,
        {{.method = "GET",
          .path = "/stream",
          .stream = [this](const ServerRequest& request,
                           std::shared_ptr<TextStream> stream) -> std::optional<ServerResponse> {
            if (refuse_) return ErrorResponse(503, "too many readers");
            last_event_id_ = request.last_event_id;
            stream->Send(opening_);
            streams_.push_back(std::move(stream));
            return std::nullopt;
          }}});
    ASSERT_TRUE(server) << server.error();
    server_ = *std::move(server);
  }

  static void Ask(RawClient& client, const std::string& header = "Host: localhost\r\n") {
    client.Send("GET /stream HTTP/1.1\r\n" + header + "\r\n");
  }
  void Join(RawClient& client) {
    const std::size_t before = streams_.size();
    Ask(client, "Host: localhost\r\nLast-Event-ID: replica-1/7\r\n");
    RunUntil(loop_, [&] { return streams_.size() > before; });
  }
  // Returns what the client receives until `end`, while the loop runs.
  std::string Read(RawClient& client, std::string_view end) {
    std::string got;
    bool done = false;
    std::jthread reader([&] {
      std::string read = client.ReadUntil(end);
      loop_.Post([&, read = std::move(read)]() mutable {
        got = std::move(read);
        done = true;
      });
    });
    RunUntil(loop_, [&] { return done; });
    return got;
  }

  RealEventLoop loop_;
  bool refuse_ = false;
  std::shared_ptr<const std::string> opening_ = Text("data: opening\n\n");
  std::string last_event_id_;
  std::vector<std::shared_ptr<TextStream>> streams_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TextStreamTest, AReaderGetsTheTextsInOrder) {
  Listen({});
  RawClient client(server_->port());
  Join(client);
  EXPECT_EQ(last_event_id_, "replica-1/7");
  for (int i = 0; i < 100; ++i) streams_[0]->Send(Text("data: " + std::to_string(i) + "\n\n"));
  const std::string got = Read(client, "data: 99\n\n");
  EXPECT_THAT(got, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                         HasSubstr("Content-Type: text/event-stream\r\n"),
                         HasSubstr("Cache-Control: no-store\r\n"), Not(HasSubstr("Content-Length")),
                         HasSubstr("\r\n\r\ndata: opening\n\ndata: 0\n\ndata: 1\n\n"),
                         EndsWith("data: 98\n\ndata: 99\n\n")));
  EXPECT_TRUE(streams_[0]->open());
  server_.reset();
  EXPECT_EQ(Read(client, {}), "") << "a server that stops closes its streams";
  EXPECT_FALSE(streams_[0]->open());
  streams_[0]->Send(Text("nobody reads this"));
}

TEST_F(TextStreamTest, AReaderThatLeavesIsNoticedWithoutAText) {
  Listen({});
  {
    RawClient client(server_->port());
    Join(client);
  }
  RunUntil(loop_, [&] { return !streams_[0]->open(); });
}

TEST_F(TextStreamTest, AReaderThatIsTooFarBehindIsDroppedAndTheOthersAreNot) {
  Listen({.max_stream_backlog = 10'000});
  // Larger than what the sockets' buffers take, and not part of the backlog.
  opening_ = Text(std::string(20'000'000, 'x'));
  RawClient slow(server_->port());
  Join(slow);
  opening_ = Text("data: opening\n\n");
  RawClient quick(server_->port());
  Join(quick);
  for (int i = 0; i < 20; ++i) {
    for (const auto& stream : streams_) stream->Send(Text(std::string(999, 'a') + "\n"));
    if (i == 8) {
      EXPECT_TRUE(streams_[0]->open()) << "9,000 bytes are not too many";
    }
    bool turned = false;
    loop_.PostAfter(2ms, [&] { turned = true; });
    RunUntil(loop_, [&] { return turned; });
  }
  EXPECT_FALSE(streams_[0]->open());
  EXPECT_TRUE(streams_[1]->open());
  streams_[1]->Send(Text("end"));
  EXPECT_THAT(Read(quick, "end"), HasSubstr("a\n"));
}

TEST_F(TextStreamTest, AStreamCanBeRefused) {
  Listen({});
  refuse_ = true;
  RawClient client(server_->port());
  Ask(client);
  EXPECT_THAT(Read(client, {}), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("application/json"),
                                      EndsWith("{\"error\":\"too many readers\"}\n")));
}

// A web site whose name leads to 127.0.0.1 sends its own name.
TEST_F(TextStreamTest, OnlyRequestsThatNameThisMachineAreAnswered) {
  Listen({.only_local_names = true});
  for (const char* header : {"Host: evil.example\r\n", "Host: evil.example:6061\r\n", ""}) {
    RawClient client(server_->port());
    Ask(client, std::string(header) + "Connection: close\r\n");
    EXPECT_THAT(Read(client, {}), StartsWith("HTTP/1.1 403")) << header;
  }
  EXPECT_TRUE(streams_.empty());
  RawClient client(server_->port());
  Ask(client, "Host: localhost:6061\r\n");
  EXPECT_THAT(Read(client, "opening\n\n"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace pliant
