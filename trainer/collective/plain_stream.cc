#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <sys/socket.h>
#include <sys/uio.h>

#include "trainer/collective/peer_stream.h"

namespace pliant {
namespace {

constexpr std::size_t kMaxVector = 64;

class PlainStream final : public PeerStream {
 public:
  explicit PlainStream(int socket) : socket_(socket) {}

  IoResult Handshake() override { return {}; }

  IoResult Read(std::span<std::byte> out) override {
    while (true) {
      const ssize_t got = ::recv(socket_, out.data(), out.size(), 0);
      if (got > 0) return {.bytes = static_cast<std::size_t>(got)};
      if (got == 0) return {.state = IoState::kClosed, .reason = "the peer closed the connection"};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {.state = IoState::kWantRead};
      return Closed(errno);
    }
  }

  IoResult Write(std::span<const std::span<const std::byte>> parts) override {
    std::array<iovec, kMaxVector> vector{};
    const std::size_t count = std::min(parts.size(), kMaxVector);
    for (std::size_t i = 0; i < count; ++i)
      vector[i] = {.iov_base = const_cast<std::byte*>(parts[i].data()), .iov_len = parts[i].size()};
    msghdr message{};
    message.msg_iov = vector.data();
    message.msg_iovlen = count;
    while (true) {
      const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
      if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {.state = IoState::kWantWrite};
      return Closed(errno);
    }
  }

  IoResult Flush() override { return {}; }
  bool authenticates() const override { return false; }

 private:
  static IoResult Closed(int error) {
    return {.state = IoState::kClosed, .reason = std::generic_category().message(error)};
  }

  const int socket_;
};

}  // namespace

std::unique_ptr<PeerStream> NewPlainStream(int socket) {
  return std::make_unique<PlainStream>(socket);
}

}  // namespace pliant
