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

// Bytes each way over a Unix socket that somebody else watches and closes, with descriptors of
// memory among them.
class DescriptorStream {
 public:
  // received() has room for this much.
  static constexpr std::size_t kReadBytes = std::size_t{128} << 10;

  explicit DescriptorStream(int socket);
  ~DescriptorStream();  // closes the descriptors that nobody took
  DescriptorStream(const DescriptorStream&) = delete;
  DescriptorStream& operator=(const DescriptorStream&) = delete;

  void Put(std::span<const std::byte> bytes);
  // The descriptor of `block` goes with the byte that is put next.
  void PutDescriptor(std::shared_ptr<const SharedBlock> block);
  // Bytes that were put and are not written.
  std::size_t queued_bytes() const { return out_.size() - out_sent_; }
  // kReady: all that was put is written.
  IoResult Write();
  // Nothing is written any more: lets go of blocks whose descriptors have not gone.
  void DropBlocks() { out_descriptors_.clear(); }

  // kReady: there is more in received().
  IoResult Read();
  // Valid until the next Read.
  std::span<const std::byte> received() const;
  void Consume(std::size_t bytes) { in_begin_ += bytes; }
  // The first descriptor that came and was not taken. The caller closes it.
  std::optional<int> TakeDescriptor();

 private:
  struct OutgoingDescriptor {
    std::uint64_t at = 0;  // sent with this byte of the stream
    std::shared_ptr<const SharedBlock> block;
  };

  void ForgetSent();

  const int socket_;
  std::vector<std::byte> out_;
  std::size_t out_sent_ = 0;     // of out_
  std::uint64_t out_begin_ = 0;  // bytes of the stream before out_
  std::deque<OutgoingDescriptor> out_descriptors_;

  std::vector<std::byte> in_;
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::deque<int> in_descriptors_;
};

}  // namespace pliant
