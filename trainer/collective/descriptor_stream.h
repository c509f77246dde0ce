#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "trainer/collective/peer_stream.h"
#include "trainer/collective/shared_memory.h"

namespace pliant {

// Bytes in both directions over a Unix socket, with memory descriptors among them. The owner polls
// and closes the socket.
class DescriptorStream {
 public:
  // The capacity of received().
  static constexpr std::size_t kReadBytes = std::size_t{128} << 10;

  explicit DescriptorStream(int socket);
  ~DescriptorStream();  // closes the descriptors that were not taken
  DescriptorStream(const DescriptorStream&) = delete;
  DescriptorStream& operator=(const DescriptorStream&) = delete;

  void Put(std::span<const std::byte> bytes);
  // The descriptor of `block` is sent with the byte that is put next.
  void PutDescriptor(std::shared_ptr<const SharedBlock> block);
  // Bytes that were put but not written yet.
  std::size_t queued_bytes() const { return out_.size() - out_sent_; }
  // kReady: all that was put is written.
  IoResult Write();
  // Nothing is written from here on: releases blocks whose descriptors were not sent.
  void DropBlocks() { out_descriptors_.clear(); }

  // kReady: there is more in received().
  IoResult Read();
  // Valid until the next Read.
  std::span<const std::byte> received() const;
  void Consume(std::size_t bytes) { in_begin_ += bytes; }
  // The first received descriptor that was not taken. The caller closes it.
  std::optional<int> TakeDescriptor();

 private:
  struct OutgoingDescriptor {
    std::uint64_t at = 0;  // sent with this byte of the stream
    std::shared_ptr<const SharedBlock> block;
  };

  void ForgetSent();

  const int socket_;
  std::vector<std::byte> out_;
  std::size_t out_sent_ = 0;     // bytes of out_
  std::uint64_t out_begin_ = 0;  // bytes of the stream before out_
  std::deque<OutgoingDescriptor> out_descriptors_;

  std::vector<std::byte> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::deque<int> in_descriptors_;
};

}  // namespace pliant
