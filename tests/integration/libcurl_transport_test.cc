// Properties that only the transport over libcurl has.
#include "operator/kube/libcurl_transport.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/integration/scripted_server.h"
#include "tests/integration/test_certificates.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ScriptedServer::Handler Answering(const std::string& text) {
  return [text](ServerConnection& connection, const ReceivedRequest&) {
    connection.Answer(200, text);
  };
}

// An HTTP proxy that accepts CONNECT and records the target.
class Proxy {
 public:
  Proxy() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
    CHECK(listen(listener_, 8) == 0, "listen");
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  ~Proxy() {
    thread_ = {};
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::string head() const {
    const std::lock_guard lock(mutex_);
    return head_;
  }
  std::atomic<bool> refuses = false;
  std::atomic<int> upstream_port = 0;

 private:
  // Serves one connection after another, which is enough for one transport.
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, /*milliseconds=*/10) <= 0) continue;
      const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      Serve(client, stop);
      close(client);
    }
  }

  void Serve(int client, const std::stop_token& stop) {
    std::string head;
    char byte = 0;
    while (!head.ends_with("\r\n\r\n") && recv(client, &byte, 1, 0) == 1) head += byte;
    {
      const std::lock_guard lock(mutex_);
      head_ = head;
    }
    const std::string_view answer =
        refuses ? "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
                : "HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n";
    send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    if (refuses) return;
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(upstream_port));
    CHECK(connect(server, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0, "connect");
    while (!stop.stop_requested() && Move(client, server)) continue;
    close(server);
  }

  static bool Move(int client, int server) {
    pollfd ready[] = {{.fd = client, .events = POLLIN, .revents = 0},
                      {.fd = server, .events = POLLIN, .revents = 0}};
    poll(ready, 2, /*milliseconds=*/10);
    for (int from : {0, 1}) {
      if (ready[from].revents == 0) continue;
      char bytes[16384];
      const ssize_t got = recv(ready[from].fd, bytes, sizeof(bytes), 0);
      if (got <= 0) return false;
      send(ready[1 - from].fd, bytes, static_cast<std::size_t>(got), MSG_NOSIGNAL);
    }
    return true;
  }

  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::string head_;  // head of the last request; guarded by mutex_
  std::jthread thread_;
};

class LibcurlTransportTest : public testing::Test {
 protected:
  LibcurlTransportTest() { config_.certificate_authority.text = authority_.pem(); }
  ~LibcurlTransportTest() override {
    unsetenv("HTTPS_PROXY");
    unsetenv("NO_PROXY");
  }

  Result<HttpResponse> Get() {
    auto transport = LibcurlTransport::Make(config_);
    if (!transport) return std::unexpected(transport.error());
    return (*transport)->Send({.target = "/", .deadline = 5s});
  }
  // Serves under a name that only the proxy can resolve.
  void ServeBehindProxy() {
    server_.emplace(authority_, ScriptedServer::Options{.names = {"api.example"}},
                    Answering("behind"));
    config_.server = "https://api.example:6443";
    proxy_.upstream_port = server_->port();
  }

  const TestAuthority authority_;
  Config config_;
  std::optional<ScriptedServer> server_;
  Proxy proxy_;
};

TEST_F(LibcurlTransportTest, AnIpv6AddressIsReached) {
  const ScriptedServer server(authority_, {.names = {"::1"}, .ipv6 = true}, Answering("six"));
  config_.server = "https://[::1]:" + std::to_string(server.port());
  const auto response = Get();
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->body, "six");
}

// For each socket of this process that is connected to the server: the seconds of silence before
// keep-alive probes begin; 0: no probes.
std::vector<int> ProbeTimesOfConnectionsTo(int port) {
  std::vector<int> times;
  for (int descriptor = 3; descriptor < 1024; ++descriptor) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || ntohs(peer.sin_port) != port) continue;
    int on = 0, idle = 0;
    size = sizeof on;
    getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, &size);
    size = sizeof idle;
    getsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle, &size);
    times.push_back(on == 0 ? 0 : idle);
  }
  return times;
}

TEST_F(LibcurlTransportTest, AConnectionThatIsSilentIsProbed) {
  const ScriptedServer server(authority_, {}, Answering("here"));
  config_.server = server.url();
  const auto transport = LibcurlTransport::Make(config_);
  ASSERT_TRUE(transport) << transport.error();
  ASSERT_TRUE((*transport)->Send({.target = "/", .deadline = 5s}));
  const std::vector<int> times = ProbeTimesOfConnectionsTo(server.port());
  ASSERT_FALSE(times.empty()) << "a connection must be kept";
  EXPECT_THAT(times, testing::Each(15));
}

int Threads() {
  return static_cast<int>(
      std::ranges::distance(std::filesystem::directory_iterator("/proc/self/task"),
                            std::filesystem::directory_iterator()));
}

TEST_F(LibcurlTransportTest, ManyTransportsShareAThread) {
  const ScriptedServer server(authority_, {}, Answering("here"));
  config_.server = server.url();
  LibcurlTransports transports;
  std::vector<std::unique_ptr<HttpTransport>> made;
  int threads_of_one = 0;
  for (int i = 0; i < 20; ++i) {
    auto transport = transports.Make(config_);
    ASSERT_TRUE(transport) << transport.error();
    made.push_back(*std::move(transport));
    const auto response = made.back()->Send({.target = "/", .deadline = 5s});
    ASSERT_TRUE(response) << response.error();
    if (i == 0) threads_of_one = Threads();
  }
  EXPECT_EQ(Threads(), threads_of_one);
  made.clear();
  EXPECT_TRUE((*transports.Make(config_))->Send({.target = "/", .deadline = 5s}));
  EXPECT_EQ(server.connections(), 1) << "connections of deleted transports are reused";
}

TEST_F(LibcurlTransportTest, AmongManyOneThatIsSilentCostsTheOthersNothing) {
  const ScriptedServer silent(
      authority_, {}, [](ServerConnection& connection, const ReceivedRequest& request) {
        request.target == "/hangs" ? connection.WaitForClient()
                                   : static_cast<void>(connection.Answer(200, "well again"));
      });
  const ScriptedServer other(authority_, {}, Answering("here"));
  LibcurlTransports transports;
  config_.server = silent.url();
  const auto to_silent = transports.Make(config_);
  config_.server = other.url();
  const auto to_other = transports.Make(config_);
  ASSERT_TRUE(to_silent && to_other);

  ASSERT_TRUE((*to_other)->Send({.target = "/", .deadline = 5s}));
  const auto timeout = (*to_silent)->Send({.target = "/hangs", .deadline = 100ms});
  ASSERT_FALSE(timeout);
  EXPECT_EQ(timeout.error().code, ErrorCode::kTimeout);
  ASSERT_TRUE((*to_other)->Send({.target = "/", .deadline = 5s}));
  EXPECT_EQ(other.connections(), 1);
  EXPECT_EQ((*to_silent)->Send({.target = "/", .deadline = 5s})->body, "well again");
  EXPECT_EQ(silent.connections(), 2) << "the silent connection is not used again";
}

TEST_F(LibcurlTransportTest, AConnectionIsOnlyForThoseWhoTrustItsAuthority) {
  const ScriptedServer server(authority_, {}, Answering("here"));
  config_.server = server.url();
  LibcurlTransports transports;
  const auto trusting = transports.Make(config_);
  ASSERT_TRUE((*trusting)->Send({.target = "/", .deadline = 5s}));
  const TestAuthority another;
  config_.certificate_authority.text = another.pem();
  const auto distrusting = transports.Make(config_);
  ASSERT_TRUE(distrusting) << distrusting.error();
  const auto response = (*distrusting)->Send({.target = "/", .deadline = 5s});
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("refused"));
  EXPECT_TRUE((*trusting)->Send({.target = "/", .deadline = 5s}));
}

TEST_F(LibcurlTransportTest, AnErrorOfOneServerIsNotReportedForAnother) {
  const TestAuthority another;
  const ScriptedServer imposter(another, {}, Answering("here"));
  boost::asio::io_context io;
  boost::asio::ip::tcp::acceptor closing(io, {boost::asio::ip::address_v4::loopback(), 0});
  const std::jthread closes([&closing] { closing.accept().close(); });
  LibcurlTransports transports;
  config_.server = imposter.url();
  const auto refused = (*transports.Make(config_))->Send({.target = "/", .deadline = 5s});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("certificate was refused"));
  config_.server = "https://127.0.0.1:" + std::to_string(closing.local_endpoint().port());
  const auto closed = (*transports.Make(config_))->Send({.target = "/", .deadline = 5s});
  ASSERT_FALSE(closed);
  EXPECT_THAT(closed.error().message, Not(HasSubstr("refused")));
}

TEST_F(LibcurlTransportTest, TheConfiguredProxyIsTakenWhateverTheEnvironmentSays) {
  ServeBehindProxy();
  config_.proxy_url = proxy_.url();
  setenv("NO_PROXY", "*", 1);
  const auto response = Get();
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->body, "behind");
  EXPECT_FALSE(response->headers.contains("X-Proxy"))
      << "the proxy's own headers are not part of the answer";
  EXPECT_THAT(proxy_.head(), StartsWith("CONNECT api.example:6443 "));
}

TEST_F(LibcurlTransportTest, TheEnvironmentNamesAProxyAndWhatNeedsNone) {
  ServeBehindProxy();
  setenv("HTTPS_PROXY", proxy_.url().c_str(), 1);
  config_.proxy_from_environment = true;
  const auto response = Get();
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->body, "behind");

  const ScriptedServer direct(authority_, {}, Answering("direct"));
  config_.server = direct.url();
  setenv("NO_PROXY", "127.0.0.0/8,10.0.0.1", 1);
  EXPECT_EQ(Get()->body, "direct");
  unsetenv("NO_PROXY");
  config_.proxy_from_environment = false;
  EXPECT_EQ(Get()->body, "direct") << "coordinators are reached without the proxy";
}

TEST_F(LibcurlTransportTest, AProxyThatRefusesIsUnavailableAndNoAnswer) {
  ServeBehindProxy();
  config_.proxy_url = proxy_.url();
  proxy_.refuses = true;
  const auto response = Get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("407"));
}

}  // namespace
}  // namespace pliant::kube
