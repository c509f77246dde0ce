#include "tests/fakes/nccl/links.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/format.h"

namespace pliant::fake_nccl {
namespace {

constexpr int kPollMilliseconds = 1;
constexpr std::chrono::milliseconds kRetry(1);

// An address without a file.
std::pair<sockaddr_un, socklen_t> AddressOf(const std::string& name, int rank) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = name + "/" + std::to_string(rank);
  CHECK(path.size() + 1 < sizeof address.sun_path, "the name is short");
  std::memcpy(&address.sun_path[1], path.data(), path.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size())};
}

}  // namespace

// The transfers of one direction between this rank and another.
struct Links::Half {
  int socket = -1;
  bool sends = false;
  std::deque<Transfer> left;
  std::uint64_t size = 0;  // of the first one, as it is announced
  std::size_t announced = 0;
  std::size_t moved = 0;
};

Links::Links(std::string name, int rank, int world_size)
    : name_(std::move(name)), rank_(rank), sockets_(static_cast<std::size_t>(world_size), -1) {
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto [address, size] = AddressOf(name_, rank_);
  const bool bound = ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0;
  CHECK(bound && ::listen(listener_, world_size) == 0, "each rank joins once");
}

Links::~Links() {
  if (listener_ >= 0) ::close(listener_);
  for (const int socket : sockets_)
    if (socket >= 0) ::close(socket);
}

bool Links::Dial(int rank) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto [address, size] = AddressOf(name_, rank);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::send(socket, &rank_, sizeof rank_, MSG_NOSIGNAL) != sizeof rank_) {
    ::close(socket);
    return false;
  }
  sockets_[static_cast<std::size_t>(rank)] = socket;
  return true;
}

Links::Outcome Links::Accept() {
  const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return Outcome::kDone;
  int rank = -1;
  if (::recv(socket, &rank, sizeof rank, MSG_WAITALL) != sizeof rank) {
    ::close(socket);
    return Outcome::kPeerLost;
  }
  CHECK(rank > rank_ && rank < std::ssize(sockets_), "a higher rank");
  sockets_[static_cast<std::size_t>(rank)] = socket;
  return Outcome::kDone;
}

Links::Outcome Links::Connect(const std::function<bool()>& stopped) {
  const auto missing = [&](int rank) {
    return rank != rank_ && sockets_[static_cast<std::size_t>(rank)] < 0;
  };
  for (;;) {
    bool complete = true;
    for (int rank = 0; rank < std::ssize(sockets_); ++rank) {
      if (!missing(rank)) continue;
      if (rank < rank_) Dial(rank);
      complete = complete && !missing(rank);
    }
    if (complete) return Outcome::kDone;
    if (stopped()) return Outcome::kStopped;
    if (Accept() == Outcome::kPeerLost) return Outcome::kPeerLost;
    std::this_thread::sleep_for(kRetry);
  }
}

// Moves what can be moved now. False: nothing could.
bool Links::Advance(Half& half, bool& lost) {
  Transfer& transfer = half.left.front();
  std::byte* memory = nullptr;
  std::size_t* moved = nullptr;
  std::size_t total = 0;
  if (half.announced < sizeof half.size) {
    if (half.sends) half.size = transfer.bytes;
    memory = reinterpret_cast<std::byte*>(&half.size);
    moved = &half.announced;
    total = sizeof half.size;
  } else {
    memory = transfer.memory;
    moved = &half.moved;
    total = transfer.bytes;
  }
  if (*moved < total) {
    const ssize_t count =
        half.sends
            ? ::send(half.socket, memory + *moved, total - *moved, MSG_NOSIGNAL | MSG_DONTWAIT)
            : ::recv(half.socket, memory + *moved, total - *moved, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) lost = true;
    if (count <= 0) return false;
    *moved += static_cast<std::size_t>(count);
  }
  if (half.announced == sizeof half.size && half.size == transfer.bytes &&
      half.moved == transfer.bytes) {
    half.left.pop_front();
    half.announced = half.moved = 0;
  }
  return true;
}

Links::Outcome Links::Carry(const std::vector<Transfer>& transfers,
                            const std::function<bool()>& stopped) {
  std::vector<Half> halves;
  for (const Transfer& transfer : transfers) {
    const int socket = sockets_[static_cast<std::size_t>(transfer.peer)];
    auto half = std::ranges::find_if(halves, [&](const Half& each) {
      return each.socket == socket && each.sends == transfer.sends;
    });
    if (half == halves.end()) {
      halves.push_back({.socket = socket, .sends = transfer.sends, .left = {}});
      half = std::prev(halves.end());
    }
    half->left.push_back(transfer);
  }
  for (;;) {
    std::erase_if(halves, [](const Half& half) { return half.left.empty(); });
    if (halves.empty()) return Outcome::kDone;
    if (stopped()) return Outcome::kStopped;
    bool moves = false;
    for (Half& half : halves) {
      bool lost = false;
      moves |= Advance(half, lost);
      if (lost) return Outcome::kPeerLost;
      if (half.left.empty() || half.sends || half.announced < sizeof half.size) continue;
      if (half.size == half.left.front().bytes) continue;
      mismatch_ = Format("rank {} receives {} bytes of rank {}, which sends {}", rank_,
                         half.left.front().bytes, half.left.front().peer, half.size);
      return Outcome::kMismatch;
    }
    if (moves) continue;
    std::vector<pollfd> waiting;
    for (const Half& half : halves)
      waiting.push_back({.fd = half.socket,
                         .events = static_cast<short>(half.sends ? POLLOUT : POLLIN),
                         .revents = 0});
    ::poll(waiting.data(), waiting.size(), kPollMilliseconds);
  }
}

}  // namespace pliant::fake_nccl
