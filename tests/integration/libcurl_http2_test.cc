// The transport over libcurl uses HTTP/2 if the server offers it, and what this saves.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/kube/libcurl_transport.h"
#include "tests/integration/scripted_server.h"
#include "tests/integration/test_certificates.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using testing::ElementsAre;

constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// The server's side of an HTTP/2 connection (RFC 9113), as far as a test needs it. Requests are not
// decoded, because their headers are compressed.
class Http2Session {
 public:
  // `stream` identifies the request: 1, 3, 5...
  using OnRequest = std::function<void(Http2Session&, std::uint32_t stream)>;

  // Returns when the client closes the connection.
  static void Serve(ServerConnection& connection, const OnRequest& on_request) {
    if (connection.Read(kClientPreface.size()) != kClientPreface) return;
    Http2Session session(connection);
    session.Send(kSettings, 0, 0, "");
    while (session.Receive(on_request)) continue;
  }

  void BeginAnswer(std::uint32_t stream) {
    constexpr std::string_view kStatus200 = "\x88";  // entry of HPACK's static table
    Send(kHeaders, kEndHeaders, stream, kStatus200);
  }
  void Body(std::uint32_t stream, std::string_view bytes) { Send(kData, 0, stream, bytes); }
  void EndAnswer(std::uint32_t stream, std::string_view last_bytes) {
    Send(kData, kEndStream, stream, last_bytes);
  }

 private:
  enum Type : std::uint8_t { kData = 0, kHeaders = 1, kSettings = 4, kPing = 6 };
  static constexpr std::uint8_t kEndStream = 1;
  static constexpr std::uint8_t kAck = 1;
  static constexpr std::uint8_t kEndHeaders = 4;

  explicit Http2Session(ServerConnection& connection) : connection_(connection) {}

  void Send(Type type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
    const auto size = static_cast<std::uint32_t>(payload.size());
    std::string frame;
    for (const std::uint32_t byte :
         {size >> 16, size >> 8, size, std::uint32_t{type}, std::uint32_t{flags}, stream >> 24,
          stream >> 16, stream >> 8, stream}) {
      frame += static_cast<char>(byte & 0xFF);
    }
    connection_.Write(frame.append(payload));
  }

  bool Receive(const OnRequest& on_request) {
    const std::string head = connection_.Read(9);
    if (head.empty()) return false;
    const auto byte = [&](std::size_t at) {
      return std::uint32_t{static_cast<std::uint8_t>(head[at])};
    };
    const std::uint32_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
    const std::uint32_t stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
    const std::string payload = connection_.Read(size);
    const bool is_ack = (byte(4) & kAck) != 0;
    switch (byte(3)) {
      case kSettings:
        if (!is_ack) Send(kSettings, kAck, 0, "");
        break;
      case kPing:
        if (!is_ack) Send(kPing, kAck, 0, payload);
        break;
      case kHeaders:
        on_request(*this, stream);
        break;
      default:
        break;
    }
    return connection_.open();
  }

  ServerConnection& connection_;
};

class LibcurlHttp2Test : public testing::Test {
 protected:
  LibcurlHttp2Test() { config_.certificate_authority.text = authority_.pem(); }

  std::unique_ptr<LibcurlTransport> TransportTo(const ScriptedServer& server) {
    config_.server = server.url();
    auto transport = LibcurlTransport::Make(config_);
    EXPECT_TRUE(transport) << transport.error();
    return *std::move(transport);
  }

  const TestAuthority authority_;
  Config config_;
};

ScriptedServer::Handler AnsweringByHttp1() {
  return [](ServerConnection& connection, const ReceivedRequest&) {
    connection.Answer(200, "by HTTP/1.1");
  };
}

TEST_F(LibcurlHttp2Test, AWatchAndARequestShareAConnection) {
  // The watch ends once the other request is answered.
  const auto on_request = [](Http2Session& session, std::uint32_t stream) {
    session.BeginAnswer(stream);
    if (stream == 1) {
      session.Body(1, "first line\n");
    } else {
      session.EndAnswer(stream, "by HTTP/2");
      session.EndAnswer(1, "last line\n");
    }
  };
  const ScriptedServer server(
      authority_,
      {.protocols = {"h2", "http/1.1"},
       .http2 = [&](ServerConnection& c) { Http2Session::Serve(c, on_request); }},
      AnsweringByHttp1());
  const auto transport = TransportTo(server);
  std::vector<std::string> lines;
  Result<HttpResponse> meanwhile = Fail(ErrorCode::kNotFound, "not asked");
  const auto watched = transport->Stream(
      {.target = "/watch", .deadline = 5s},
      [&](std::string_view line) {
        lines.emplace_back(line);
        if (lines.size() == 1) meanwhile = transport->Send({.target = "/", .deadline = 5s});
        return true;
      },
      5s);
  ASSERT_TRUE(watched) << watched.error();
  EXPECT_THAT(lines, ElementsAre("first line", "last line"));
  ASSERT_TRUE(meanwhile) << meanwhile.error();
  EXPECT_EQ(meanwhile->status, 200);
  EXPECT_EQ(meanwhile->body, "by HTTP/2");
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(LibcurlHttp2Test, SpeaksHttp1IfTheServerDoesNotTakeHttp2) {
  for (const std::vector<std::string>& protocols :
       {std::vector<std::string>{"http/1.1"}, std::vector<std::string>{}}) {
    const ScriptedServer server(authority_, {.protocols = protocols}, AnsweringByHttp1());
    const auto transport = TransportTo(server);
    for (int i = 0; i < 2; ++i) {
      const auto response = transport->Send({.target = "/", .deadline = 5s});
      ASSERT_TRUE(response) << response.error();
      EXPECT_EQ(response->body, "by HTTP/1.1");
    }
    EXPECT_EQ(server.connections(), 1);
  }
}

TEST_F(LibcurlHttp2Test, SpeaksHttp1ToOneOfManyServers) {
  const ScriptedServer server(authority_,
                              {.protocols = {"h2", "http/1.1"},
                               .http2 =
                                   [](ServerConnection& c) {
                                     Http2Session::Serve(
                                         c, [](Http2Session& session, std::uint32_t stream) {
                                           session.BeginAnswer(stream);
                                           session.EndAnswer(stream, "by HTTP/2");
                                         });
                                   }},
                              AnsweringByHttp1());
  config_.server = server.url();
  LibcurlTransports transports;
  const auto transport = transports.Make(config_);
  ASSERT_TRUE(transport) << transport.error();
  const auto response = (*transport)->Send({.target = "/", .deadline = 5s});
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->body, "by HTTP/1.1");
}

}  // namespace
}  // namespace pliant::kube
