// One learner of the all-reduce bench: the product's transport and reduction, and nothing else. It
// reads commands from standard input, and answers each with one line:
//
//   all_reduce_worker RANK WORLD plain|tls|shm FOLDER    FOLDER: where ranks on shm meet
//     → its address
//   peers ADDRESS...             every rank's, in order
//     → "connected"
//   reduce BYTES REPEATS         fp32 sums of that size, one after the other, each behind a barrier
//     → "BEGIN END" of each, in nanoseconds of the machine's monotonic clock
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/format.h"
#include "base/real_event_loop.h"
#include "trainer/collective/reduction.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/socket_transport.h"
#include "trainer/collective/tree.h"

namespace pliant {
namespace {

constexpr MembershipId kMembership{.term = 1, .counter = 1};

LearnerId IdOf(int rank) { return {.name = Format("learner-{}", rank), .nonce = 1}; }

std::unique_ptr<PeerTransport> NewTransport(RealEventLoop& loop, SharedMemory& memory, int rank,
                                            const std::string& kind, const std::string& folder) {
  auto made = MakeSocketTransport(loop, {.self = IdOf(rank),
                                         .peer_key = kind == "plain" ? "" : "a key",
                                         .shared_memory_folder = kind == "shm" ? folder : "",
                                         .shared_memory = &memory});
  CHECK(made, "loopback has a free port");
  return *std::move(made);
}

class Worker final : public PeerHandler {
 public:
  Worker(int rank, int world, const std::string& kind, const std::string& folder)
      : rank_(rank),
        world_(world),
        memory_(kind == "shm" ? shared_memory_ : HeapMemory()),
        transport_(NewTransport(loop_, shared_memory_, rank, kind, folder)) {
    transport_->SetHandler(this);
  }

  std::string address() const { return transport_->address(); }

  void Connect(const std::vector<std::string>& addresses) {
    for (int rank = 0; rank < world_; ++rank) {
      if (rank == rank_) continue;
      const Member peer{.id = IdOf(rank), .address = addresses[static_cast<std::size_t>(rank)]};
      transport_->Connect(peer);
    }
    Wait([this] { return connected_ == world_ - 1; });
    SendAll();
  }

  // There are enough shards that the learners' numbers of shards differ by one at most.
  void Reduce(std::size_t bytes, int repeats, std::ostream& out) {
    const std::size_t elements = bytes / sizeof(float);
    const auto shards =
        world_ == 1 ? 2 : static_cast<int>(std::bit_ceil(static_cast<unsigned>(world_)));
    const ShardMap map = AssignShards(
        std::has_single_bit(static_cast<unsigned>(world_)) ? shards : 4 * shards, world_);
    Reduction reduction(
        elements, [this](int to, Frame frame) { transport_->Send(IdOf(to), std::move(frame)); });
    std::vector<HeldNode> nodes;
    for (const ShardBlock& block : map.blocks_of_rank[static_cast<std::size_t>(rank_)]) {
      nodes.push_back(
          {.node = NodeOf(map.logical_shards, block), .sum = FloatBuffer(elements, memory_)});
      for (float& value : nodes.back().sum.view())
        value = static_cast<float>(block.count * (rank_ + 1));
    }
    const auto divisor = static_cast<float>(map.logical_shards);
    for (int repeat = 0; repeat < repeats; ++repeat) {
      Barrier();
      const TimePoint begin = MonotonicNow();
      ++tick_;
      reduction_ = &reduction;
      reduction.Begin({.membership = kMembership,
                       .tick = tick_,
                       .plan = plans_.For(map, {}, rank_),
                       .divisor = divisor});
      for (const HeldNode& node : nodes) reduction.AddLocal(node);
      for (auto& [peer, frame] : std::exchange(early_, {})) Deliver(peer, frame);
      Wait([&] { return reduction.done(); });
      const TimePoint end = MonotonicNow();
      reduction_ = nullptr;
      out << begin.time_since_epoch().count() << ' ' << end.time_since_epoch().count() << ' ';
    }
    Verify(map, reduction.root());
    Barrier();  // no peer still sends memory that is freed at the end of this function
    SendAll();
  }

 private:
  void OnPeerConnected(const LearnerId&) override { ++connected_; }
  void OnPeerLost(const LearnerId& peer, const PeerLoss& loss) override {
    std::cerr << ToString(peer) << ": " << loss.reason << '\n';
    std::exit(1);
  }
  MutableBytes ReceiveBufferFor(const LearnerId& peer, const FrameHeader& header,
                                std::size_t bytes) override {
    if (reduction_ == nullptr || header.tick != tick_) return {};
    return reduction_->ReceiveBufferFor(RankOf(peer), header, bytes);
  }
  void OnFrame(const LearnerId& peer, Frame frame) override {
    if (frame.header.kind == FrameKind::kTrailer) {
      ++arrivals_[frame.header.tick];
    } else if (reduction_ == nullptr || frame.header.tick != tick_) {
      early_.emplace_back(peer, std::move(frame));
    } else {
      Deliver(peer, frame);
    }
  }

  void Deliver(const LearnerId& peer, const Frame& frame) {
    const Status taken = reduction_->OnFrame(RankOf(peer), frame);
    CHECK(taken, "peers of a bench send what they shall");
  }

  int RankOf(const LearnerId& peer) const {
    int rank = 0;
    while (IdOf(rank) != peer) ++rank;
    return rank;
  }

  void Barrier() {
    ++barrier_;
    for (int rank = 0; rank < world_; ++rank) {
      if (rank != rank_)
        transport_->Send(IdOf(rank), {.header = {.kind = FrameKind::kTrailer, .tick = barrier_}});
    }
    Wait([this] { return arrivals_[barrier_] == world_ - 1; });
    arrivals_.erase(barrier_);
  }

  // Sends everything that is queued, before this process stops serving its loop for a while.
  void SendAll() {
    loop_.context().restart();
    while (loop_.context().poll() > 0) {
    }
  }

  template <typename Done>
  void Wait(const Done& done) {
    while (!done()) {
      loop_.context().restart();
      loop_.context().run_one();
    }
  }

  void Verify(const ShardMap& map, std::span<const float> root) const {
    double sum = 0;
    for (int rank = 0; rank < world_; ++rank)
      sum += static_cast<double>(map.ShardsOf(rank).size()) * (rank + 1);
    const auto want = static_cast<float>(sum / map.logical_shards);
    for (const float value : root) CHECK(value == want, "the sum over all ranks");
  }

  const int rank_;
  const int world_;
  SharedMemory shared_memory_;
  MemorySource& memory_;
  RealEventLoop loop_;
  std::unique_ptr<PeerTransport> transport_;
  int connected_ = 0;
  Tick tick_ = 0;
  LastReductionPlan plans_;
  Reduction* reduction_ = nullptr;  // null while none runs
  std::vector<std::pair<LearnerId, Frame>> early_;
  Tick barrier_ = 0;
  std::map<Tick, int> arrivals_;  // arrived peers, by barrier
};

int Run(int rank, int world, const std::string& kind, const std::string& folder) {
  Worker worker(rank, world, kind, folder);
  std::cout << worker.address() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word == "peers") {
      std::vector<std::string> addresses(static_cast<std::size_t>(world));
      for (std::string& address : addresses) words >> address;
      worker.Connect(addresses);
      std::cout << "connected" << std::endl;
    } else {
      std::size_t bytes = 0;
      int repeats = 0;
      words >> bytes >> repeats;
      worker.Reduce(bytes, repeats, std::cout);
      std::cout << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace pliant

int main(int argc, char** argv) {
  CHECK(argc == 5, "all_reduce_worker RANK WORLD plain|tls|shm FOLDER");
  return pliant::Run(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], argv[4]);
}
