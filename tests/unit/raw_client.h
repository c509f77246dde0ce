#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace pliant {

// A blocking client that sends exactly the given bytes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, std::uint32_t address = INADDR_LOOPBACK)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval timeout{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(port);
    server.sin_addr.s_addr = htonl(address);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&server), sizeof server) == 0;
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { ::close(socket_); }

  bool connected() const { return connected_; }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server may have refused before the end
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // Reads until `end` was received, or the server closed the connection.
  std::string ReadUntil(std::string_view end) {
    std::string got;
    char part[4096];
    while (end.empty() || got.find(end) == got.npos) {
      const ssize_t bytes = ::recv(socket_, part, sizeof part, 0);
      if (bytes < 0) return got + "[" + (errno == EAGAIN ? "still open" : "reset") + "]";
      if (bytes == 0) break;
      got.append(part, static_cast<std::size_t>(bytes));
    }
    return got;
  }
  std::string ReadAll() { return ReadUntil({}); }

 private:
  const int socket_;
  bool connected_ = false;
};

}  // namespace pliant
