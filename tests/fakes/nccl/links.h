#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pliant::fake_nccl {

// A message to another rank, or one that is expected from it.
struct Transfer {
  int peer = 0;
  std::byte* memory = nullptr;  // of the host
  std::size_t bytes = 0;
  bool sends = false;
};

// The sockets between the ranks of a communicator, of the same host.
class Links {
 public:
  // `name`: equal on all ranks, and unique.
  Links(std::string name, int rank, int world_size);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  enum class Outcome { kDone, kStopped, kPeerLost, kMismatch };

  // Each of these waits until it is done, a peer is lost, or `stopped` is true.
  Outcome Connect(const std::function<bool()>& stopped);
  // All at once; those with one peer in their order.
  Outcome Carry(const std::vector<Transfer>& transfers, const std::function<bool()>& stopped);
  // For people: which sizes differed, after kMismatch.
  const std::string& mismatch() const { return mismatch_; }

 private:
  struct Half;
  Outcome Accept();
  bool Dial(int rank);
  static bool Advance(Half& half, bool& lost);

  const std::string name_;
  const int rank_;
  int listener_ = -1;
  std::vector<int> sockets_;  // by rank; -1: none
  std::string mismatch_;
};

}  // namespace pliant::fake_nccl
