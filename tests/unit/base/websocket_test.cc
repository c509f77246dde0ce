#include "base/websocket.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/http_server.h"
#include "base/real_event_loop.h"
#include "base/secret.h"
#include "base/websocket_client.h"
#include "tests/unit/run_until.h"
#include "tests/unit/tls_listener.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// A self-signed certificate for `name`, in a folder that is removed with the object.
class Certificate {
 public:
  Certificate(const std::string& folder, const std::string& name)
      : folder_(testing::TempDir() + "pliant-websocket-test-" + std::to_string(::getpid()) + "-" +
                folder) {
    std::filesystem::create_directories(folder_);
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=test"
        " -addext 'subjectAltName=DNS:" +
        name + "' -keyout " + key().string() + " -out " + certificate().string() + " 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  Certificate(const Certificate&) = delete;
  Certificate& operator=(const Certificate&) = delete;
  ~Certificate() { std::filesystem::remove_all(folder_); }

  std::filesystem::path certificate() const { return folder_ / "tls.crt"; }
  std::filesystem::path key() const { return folder_ / "tls.key"; }
  TlsFiles files() const { return {.certificate = certificate(), .key = key()}; }

 private:
  const std::filesystem::path folder_;
};

// One side of a connection, and the events that it received.
struct Side {
  std::shared_ptr<WebSocket> socket;
  std::vector<std::string> texts;
  std::string closed_because;
  bool closed = false;

  WebSocketCallbacks Callbacks() {
    return {.on_message = [this](std::string text) { texts.push_back(std::move(text)); },
            .on_closed =
                [this](std::string_view reason) {
                  closed_because = reason;
                  closed = true;
                }};
  }
};

// Server and client on one event loop.
class WebSocketTest : public testing::Test {
 protected:
  void Listen(HttpServerOptions options = {}) {
    options.address = "127.0.0.1";
    auto server = HttpServer::Listen(
        loop_, options,
        {{.method = "GET",
          .path = "/socket",
          .admit =
              [](std::string_view token) {
                return ConstantTimeEquals(token, "secret") ? Access::kGranted : Access::kUnknown;
              },
          .accept =
              [this](std::shared_ptr<WebSocket> socket) {
                server_side_.socket = std::move(socket);
                return server_side_.Callbacks();
              }}});
    ASSERT_TRUE(server) << server.error();
    server_ = *std::move(server);
  }

  WebSocketEndpoint Endpoint() const {
    return {.host = "127.0.0.1",
            .port = std::to_string(server_->port()),
            .path = "/socket",
            .bearer_token = "secret"};
  }

  // Connects. Returns the error if that failed.
  std::optional<Error> Connect(WebSocketEndpoint endpoint, WebSocketLimits limits = {}) {
    std::optional<Error> error;
    bool done = false;
    ConnectWebSocket(loop_, std::move(endpoint), limits,
                     [&](Result<std::shared_ptr<WebSocket>> socket) {
                       done = true;
                       if (!socket) {
                         error = socket.error();
                         return WebSocketCallbacks{};
                       }
                       client_side_.socket = *std::move(socket);
                       return client_side_.Callbacks();
                     });
    EXPECT_FALSE(done) << "never within the call";
    RunUntil([&] { return done && (error || server_side_.socket); });
    return error;
  }

  void RunUntil(const std::function<bool()>& condition) { pliant::RunUntil(loop_, condition); }

  RealEventLoop loop_;
  Side server_side_;
  Side client_side_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(WebSocketTest, TextsArriveInOrderBothWays) {
  Listen();
  ASSERT_EQ(Connect(Endpoint()), std::nullopt);
  for (const char* text : {"one", "two", "three"}) client_side_.socket->Send(text);
  RunUntil([&] { return server_side_.texts.size() == 3; });
  EXPECT_THAT(server_side_.texts, ElementsAre("one", "two", "three"));
  for (const char* text : {"four", "five"}) server_side_.socket->Send(text);
  RunUntil([&] { return client_side_.texts.size() == 2; });
  EXPECT_THAT(client_side_.texts, ElementsAre("four", "five"));
}

TEST_F(WebSocketTest, CloseSendsWhatIsQueuedFirst) {
  Listen();
  ASSERT_EQ(Connect(Endpoint()), std::nullopt);
  client_side_.socket->Send(std::string(200000, 'x'));
  client_side_.socket->Send("last");
  client_side_.socket->Close("done here");
  client_side_.socket->Send("dropped");
  RunUntil([&] { return server_side_.closed && client_side_.closed; });
  ASSERT_EQ(server_side_.texts.size(), 2U);
  EXPECT_EQ(server_side_.texts[1], "last");
  EXPECT_EQ(server_side_.closed_because, "closed by the other side");
  EXPECT_EQ(client_side_.closed_because, "done here");
}

TEST_F(WebSocketTest, ATooLongTextEndsTheConnection) {
  Listen({.websocket = {.max_message_bytes = 1000}});
  ASSERT_EQ(Connect(Endpoint()), std::nullopt);
  client_side_.socket->Send(std::string(1000, 'x'));
  client_side_.socket->Send(std::string(1001, 'x'));
  RunUntil([&] { return server_side_.closed && client_side_.closed; });
  EXPECT_EQ(server_side_.texts.size(), 1U);
}

TEST_F(WebSocketTest, APeerThatDoesNotReadIsDropped) {
  Listen({.websocket = {.max_queued_bytes = 10000}});
  ASSERT_EQ(Connect(Endpoint()), std::nullopt);
  server_side_.socket->Send(std::string(6000, 'x'));
  server_side_.socket->Send(std::string(6000, 'x'));
  RunUntil([&] { return server_side_.closed && client_side_.closed; });
  EXPECT_THAT(server_side_.closed_because, HasSubstr("does not read"));
}

TEST_F(WebSocketTest, PingsKeepAQuietConnectionOpen) {
  Listen({.websocket = {.idle_timeout = 200ms}});
  ASSERT_EQ(Connect(Endpoint()), std::nullopt);
  bool waited = false;
  loop_.PostAfter(700ms, [&] { waited = true; });
  RunUntil([&] { return waited; });
  EXPECT_FALSE(server_side_.closed);
  client_side_.socket->Send("still here");
  RunUntil([&] { return !server_side_.texts.empty(); });
}

TEST_F(WebSocketTest, TheEndOfTheServerIsSeen) {
  Listen();
  ASSERT_EQ(Connect(Endpoint()), std::nullopt);
  server_.reset();
  RunUntil([&] { return client_side_.closed; });
  EXPECT_FALSE(server_side_.closed) << "a stopped server makes no callbacks";
}

TEST_F(WebSocketTest, AWrongTokenIsDenied) {
  Listen();
  WebSocketEndpoint endpoint = Endpoint();
  endpoint.bearer_token = "guess";
  const auto error = Connect(endpoint);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kDenied);
  EXPECT_THAT(error->message, HasSubstr("401"));
}

TEST_F(WebSocketTest, NobodyListeningMayPass) {
  Listen();
  WebSocketEndpoint endpoint = Endpoint();
  server_.reset();
  const auto error = Connect(endpoint);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kUnavailable);
}

TEST_F(WebSocketTest, TlsChecksTheAuthorityAndTheNameWhateverTheHost) {
  const Certificate good("good", "coordinator.test");
  const Certificate other("other", "coordinator.test");
  Listen({.tls = good.files()});
  WebSocketEndpoint endpoint = Endpoint();
  endpoint.tls = {.ca_file = good.certificate(), .server_name = "coordinator.test"};
  ASSERT_EQ(Connect(endpoint), std::nullopt);
  client_side_.socket->Send("hello");
  RunUntil([&] { return !server_side_.texts.empty(); });

  endpoint.tls->server_name = "somebody.else";
  auto error = Connect(endpoint);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kDenied) << *error;

  endpoint.tls = {.ca_file = other.certificate(), .server_name = "coordinator.test"};
  error = Connect(endpoint);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kDenied) << *error;

  endpoint.tls->ca_file = "/nowhere/ca.crt";
  error = Connect(endpoint);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("/nowhere/ca.crt"));
}

TEST_F(WebSocketTest, TlsIsOfVersion13) {
  const Certificate good("version", "coordinator.test");
  const auto client_finds = [&](int newest) {
    TlsListener server(*ReadFile(good.certificate()), *ReadFile(good.key()), newest);
    WebSocketEndpoint endpoint{.host = "127.0.0.1", .port = std::to_string(server.port())};
    endpoint.tls = {.ca_file = good.certificate(), .server_name = "coordinator.test"};
    EXPECT_TRUE(Connect(endpoint));
    return server.Next().handshake;
  };
  EXPECT_FALSE(client_finds(TLS1_2_VERSION));
  EXPECT_TRUE(client_finds(TLS1_3_VERSION));

  Listen({.tls = good.files()});
  const auto server_takes = [&](int newest) {
    boost::asio::ssl::context tls(boost::asio::ssl::context::tls_client);
    SSL_CTX_set_max_proto_version(tls.native_handle(), newest);
    boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(loop_.context(), tls);
    stream.next_layer().connect({boost::asio::ip::address_v4::loopback(), server_->port()});
    std::optional<bool> taken;
    stream.async_handshake(boost::asio::ssl::stream_base::client,
                           [&](const boost::system::error_code& error) { taken = !error; });
    RunUntil([&] { return taken.has_value(); });
    return taken;
  };
  EXPECT_EQ(server_takes(TLS1_2_VERSION), false);
  EXPECT_EQ(server_takes(TLS1_3_VERSION), true);
}

TEST_F(WebSocketTest, ARenewedCertificateIsUsedForNewConnections) {
  const Certificate served("served", "coordinator.test");
  const Certificate renewed("renewed", "coordinator.test");
  Listen({.tls = served.files()});
  WebSocketEndpoint endpoint = Endpoint();
  endpoint.tls = {.ca_file = renewed.certificate(), .server_name = "coordinator.test"};
  ASSERT_TRUE(Connect(endpoint)) << "the server still has the old certificate";

  // An incomplete pair of key and certificate is ignored.
  std::filesystem::copy_file(renewed.key(), served.key(),
                             std::filesystem::copy_options::overwrite_existing);
  ASSERT_TRUE(Connect(endpoint));

  std::filesystem::copy_file(renewed.certificate(), served.certificate(),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Connect(endpoint), std::nullopt);
}

TEST_F(WebSocketTest, AServerNeedsUsableTlsFilesToStart) {
  const Certificate one("one", "coordinator.test");
  const Certificate two("two", "coordinator.test");
  const auto server = HttpServer::Listen(
      loop_, {.tls = TlsFiles{.certificate = one.certificate(), .key = two.key()}}, {});
  ASSERT_FALSE(server);
  EXPECT_THAT(server.error().message, HasSubstr("does not fit"));
}

}  // namespace
}  // namespace pliant
