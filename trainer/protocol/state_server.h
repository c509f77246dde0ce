#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

#include "trainer/protocol/state_transfer.h"

namespace pliant {

// The states that a member is sending to others, by rank: batch after batch, each when the receiver
// requests it.
class StateServer {
 public:
  using SendTo = std::function<void(int rank, Frame frame)>;

  StateServer(std::size_t batch_bytes, SendTo send_to)
      : batch_bytes_(batch_bytes), send_to_(std::move(send_to)) {}

  // Sends the first batches. Replaces a transfer to that rank that is still running.
  void Begin(int rank, StateSender sender) {
    senders_.insert_or_assign(rank, std::move(sender));
    for (int i = 0; i < kBatchesUnderWay; ++i) SendNext(rank);
  }
  // Does nothing if nothing is left for it.
  void SendNext(int rank) {
    const auto found = senders_.find(rank);
    if (found == senders_.end()) return;
    found->second.SendBatch(batch_bytes_, [&](Frame frame) { send_to_(rank, std::move(frame)); });
    if (found->second.done()) senders_.erase(found);
  }
  void Clear() { senders_.clear(); }

 private:
  const std::size_t batch_bytes_;
  const SendTo send_to_;
  std::map<int, StateSender> senders_;
};

}  // namespace pliant
