#include "trainer/runtime/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pliant {

void SendState(MembershipId membership, Tick applied_ticks, std::shared_ptr<const StateCopy> state,
               const std::function<void(Frame)>& send) {
  FrameHeader header{.kind = FrameKind::kState,
                     .membership = membership,
                     .tick = applied_ticks,
                     .node = kFirstStateFrame};
  for (const TensorView& tensor : state->view()) {
    std::span<const std::byte> rest = tensor.bytes;
    for (header.piece = 0; !rest.empty(); ++header.piece) {
      const std::size_t size = std::min(rest.size(), kStateSliceBytes);
      send({.header = header, .payload = {.owner = state, .view = rest.first(size)}});
      header.node = 0;
      rest = rest.subspan(size);
    }
    ++header.bucket;
  }
  header.piece = 0;
  send({.header = header, .payload = {}});
}

StateReceiver::StateReceiver(const StateDict& shape)
    : state_(std::make_shared<StateCopy>(StateCopy::Like(shape))) {}

Status StateReceiver::OnFrame(const Frame& frame) {
  const StateDict& tensors = state_->view();
  const std::span<const std::byte> payload = frame.payload.view;
  while (tensor_ < tensors.size() && offset_ == tensors[tensor_].bytes.size()) {
    ++tensor_;
    offset_ = 0;
  }
  if (done_ || frame.header.bucket != tensor_) return Invalid("a slice of another tensor");
  if (tensor_ == tensors.size()) {
    if (!payload.empty()) return Invalid("more state than there is");
    done_ = true;
    applied_ticks_ = frame.header.tick;
    return {};
  }
  const std::span<std::byte> target = tensors[tensor_].bytes.subspan(offset_);
  if (payload.empty() || payload.size() > target.size()) {
    return Invalid("a slice that does not fit its tensor");
  }
  std::memcpy(target.data(), payload.data(), payload.size());
  offset_ += payload.size();
  return {};
}

}  // namespace pliant
