#include "tests/integration/operator/deaf_way.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace pliant {
namespace {

constexpr int kLookMilliseconds = 20;
constexpr int kAnswerMilliseconds = 2000;  // for the server's answer to a client that has gone

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int Connect(int port) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  CHECK(connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
        "the server listens");
  return server;
}

// "" at the end of the stream, and after an error.
std::string Receive(int from) {
  char bytes[16384];
  const ssize_t got = recv(from, bytes, sizeof(bytes), 0);
  return got <= 0 ? std::string() : std::string(bytes, static_cast<std::size_t>(got));
}

void SendAll(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the peer has gone; reading from it will report that, too
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool HasNews(int descriptor, int milliseconds) {
  pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
  return poll(&ready, 1, milliseconds) > 0;
}

}  // namespace

DeafWay::DeafWay(int server_port) : server_port_(server_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  CHECK(listen(listener_, 32) == 0, "listen");
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
}

DeafWay::~DeafWay() {
  acceptor_.request_stop();
  acceptor_.join();
  close(listener_);
}

void DeafWay::Accept(const std::stop_token& stop) {
  std::vector<std::jthread> carriers;
  while (!stop.stop_requested()) {
    if (!HasNews(listener_, kLookMilliseconds)) continue;
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    carriers.emplace_back([this, client, stop] { Carry(client, stop); });
  }
}

void DeafWay::Carry(int client, const std::stop_token& stop) {
  const int server = Connect(server_port_);
  std::string held;
  bool client_gone = false;
  while (!stop.stop_requested()) {
    if (!deaf_ && !held.empty()) {
      SendAll(server, held);
      if (client_gone) HasNews(server, kAnswerMilliseconds);
      bytes_held_ -= held.size();
      held.clear();
    }
    if (client_gone && held.empty()) break;
    pollfd ready[] = {{.fd = client_gone ? -1 : client, .events = POLLIN, .revents = 0},
                      {.fd = server, .events = POLLIN, .revents = 0}};
    if (poll(ready, 2, kLookMilliseconds) <= 0) continue;
    if (ready[0].revents != 0) {
      const std::string bytes = Receive(client);
      client_gone = bytes.empty();
      held += bytes;
      bytes_held_ += bytes.size();
    }
    if (ready[1].revents != 0) {
      const std::string bytes = Receive(server);
      if (bytes.empty()) break;
      if (!client_gone) SendAll(client, bytes);
    }
  }
  bytes_held_ -= held.size();
  close(server);
  close(client);
}

}  // namespace pliant
