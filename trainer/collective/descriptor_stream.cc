#include "trainer/collective/descriptor_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace pliant {
namespace {

constexpr std::size_t kMaxDescriptors = 16;  // received and not taken yet

IoResult Closed(std::string reason) {
  return {.state = IoState::kClosed, .reason = std::move(reason)};
}

IoResult ClosedByError() { return Closed(std::generic_category().message(errno)); }

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

// Like sendmsg. `descriptor` is sent with the first byte; -1: none.
ssize_t SendBytes(int socket, std::span<const std::byte> bytes, int descriptor) {
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(descriptor));
  }
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

DescriptorStream::DescriptorStream(int socket) : socket_(socket), in_(kReadBytes) {}

DescriptorStream::~DescriptorStream() {
  for (const int descriptor : in_descriptors_) ::close(descriptor);
}

void DescriptorStream::Put(std::span<const std::byte> bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
}

void DescriptorStream::PutDescriptor(std::shared_ptr<const SharedBlock> block) {
  out_descriptors_.push_back({.at = out_begin_ + out_.size(), .block = std::move(block)});
}

IoResult DescriptorStream::Write() {
  while (out_sent_ < out_.size()) {
    const std::uint64_t at = out_begin_ + out_sent_;
    const bool with_descriptor = !out_descriptors_.empty() && out_descriptors_.front().at == at;
    const std::size_t next = with_descriptor ? 1 : 0;
    // One call sends one descriptor, so it ends before the byte of the next.
    const std::size_t end = out_descriptors_.size() > next
                                ? static_cast<std::size_t>(out_descriptors_[next].at - out_begin_)
                                : out_.size();
    const ssize_t sent =
        SendBytes(socket_, std::span(out_).first(end).subspan(out_sent_),
                  with_descriptor ? out_descriptors_.front().block->descriptor() : -1);
    if (sent > 0) {
      if (with_descriptor) out_descriptors_.pop_front();
      out_sent_ += static_cast<std::size_t>(sent);
    } else if (sent < 0 && WouldBlock()) {
      ForgetSent();
      return {.state = IoState::kWantWrite, .reason = {}};
    } else if (errno != EINTR) {
      return ClosedByError();
    }
  }
  ForgetSent();
  return {};
}

void DescriptorStream::ForgetSent() {
  out_begin_ += out_sent_;
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(std::exchange(out_sent_, 0)));
}

IoResult DescriptorStream::Read() {
  std::copy(in_.begin() + static_cast<std::ptrdiff_t>(in_begin_),
            in_.begin() + static_cast<std::ptrdiff_t>(in_end_), in_.begin());
  in_end_ -= std::exchange(in_begin_, 0);
  iovec part{.iov_base = in_.data() + in_end_, .iov_len = in_.size() - in_end_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMaxDescriptors)> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && WouldBlock()) return {.state = IoState::kWantRead, .reason = {}};
  if (got < 0) return ClosedByError();
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      in_descriptors_.push_back(descriptor);
    }
  }
  if (got == 0) return Closed("the peer closed the connection");
  // This process has reached its limit of open files, or the peer sent more descriptors than fit.
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return Closed("the kernel withheld descriptors: too many open files, or too many sent at once");
  if (in_descriptors_.size() > kMaxDescriptors)
    return Closed("the peer sent more descriptors than it named");
  in_end_ += static_cast<std::size_t>(got);
  return {.bytes = static_cast<std::size_t>(got), .reason = {}};
}

std::span<const std::byte> DescriptorStream::received() const {
  return std::span(in_).first(in_end_).subspan(in_begin_);
}

std::optional<int> DescriptorStream::TakeDescriptor() {
  if (in_descriptors_.empty()) return std::nullopt;
  const int descriptor = in_descriptors_.front();
  in_descriptors_.pop_front();
  return descriptor;
}

}  // namespace pliant
