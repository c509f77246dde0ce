#include "trainer/protocol/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "trainer/checkpoint/state_slice.h"

namespace pliant {

StateSender::StateSender(MembershipId membership, Tick applied_ticks,
                         std::shared_ptr<const StateCopy> state)
    : header_{.kind = FrameKind::kState,
              .membership = membership,
              .tick = applied_ticks,
              .node = kFirstStateFrame},
      state_(std::move(state)) {}

void StateSender::SendBatch(std::size_t bytes, const Send& send) {
  CHECK(!done_, "some state is left to send");
  const StateDict& tensors = state_->view();
  for (std::size_t sent = 0; !done_ && sent < bytes;) {
    while (header_.bucket < tensors.size() && offset_ == tensors[header_.bucket].bytes.size()) {
      ++header_.bucket;
      offset_ = 0;
    }
    done_ = header_.bucket == tensors.size();
    Frame frame{.header = header_, .payload = {}};
    if (!done_) {
      const std::span<const std::byte> rest = tensors[header_.bucket].bytes.subspan(offset_);
      const std::size_t size = std::min({rest.size(), kStatePieceBytes, bytes - sent});
      frame.payload = {.owner = state_, .view = rest.first(size)};
      offset_ += size;
      sent += size;
    }
    if (!done_ && sent >= bytes) frame.header.node |= kLastOfBatch;
    header_.node = 0;
    send(std::move(frame));
  }
}

Status StateReceiver::OnFrame(const Frame& frame) {
  const std::span<const std::byte> payload = frame.payload.view;
  while (tensor_ < tensors_.size() && offset_ == tensors_[tensor_].bytes.size()) {
    ++tensor_;
    offset_ = 0;
  }
  if (done_ || frame.header.bucket != tensor_) return Invalid("a piece of another tensor");
  if (tensor_ == tensors_.size()) {
    if (!payload.empty()) return Invalid("more state than expected");
    done_ = true;
    applied_ticks_ = frame.header.tick;
    return {};
  }
  const std::span<std::byte> target = tensors_[tensor_].bytes.subspan(offset_);
  if (payload.empty() || payload.size() > target.size()) {
    return Invalid("a piece that does not fit its tensor");
  }
  std::memcpy(target.data(), payload.data(), payload.size());
  offset_ += payload.size();
  return {};
}

SlicedStateReceiver::SlicedStateReceiver(const StateDict& shape, const std::vector<int>& sources)
    : state_(std::make_shared<StateCopy>(StateCopy::Like(shape))) {
  const int count = static_cast<int>(sources.size());
  for (int index = 0; index < count; ++index) {
    slice_of_.emplace(sources[static_cast<std::size_t>(index)],
                      SliceOf(state_->view(), {.index = index, .count = count}));
  }
}

Status SlicedStateReceiver::OnFrame(int source, const Frame& frame) {
  const auto slice = slice_of_.find(source);
  if (slice == slice_of_.end()) return Invalid("state from a member that should not send any");
  return slice->second.OnFrame(frame);
}

bool SlicedStateReceiver::done() const {
  return std::ranges::all_of(slice_of_, [](const auto& item) { return item.second.done(); });
}

}  // namespace pliant
