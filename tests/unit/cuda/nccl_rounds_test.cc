// Ranks, each a process, sum gradients over NCCL: with the stand-ins for it and for the driver or,
// if the machine has a GPU, with the real ones, where all ranks share the GPU.

#include "trainer/cuda/nccl_rounds.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/format.h"
#include "tests/fakes/cuda/found_violation.h"
#include "trainer/collective/tree_sum.h"

namespace pliant {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kMaxRanks = 8;
constexpr std::chrono::seconds kPatience(60);
constexpr int kShards = 8;
constexpr std::size_t kElements = 5003;
constexpr BucketSizes kBuckets = {.first = 512, .rest = 1600};
constexpr float kDivisor = 24;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kSeeds = 10;
#else
constexpr std::uint64_t kSeeds = 100;
#endif

// Memory of all processes.
struct Board {
  std::atomic<int> ids = 0;  // made so far
  CommunicatorId id[4] = {};
  std::atomic<int> sums[kMaxRanks] = {};  // right ones, by rank
  std::atomic<bool> lost = false;         // as the learners' own connections tell it
  char said[kMaxRanks][400] = {};
};

// A value of each shard's gradient.
float Leaf(int shard, std::size_t element, int sum) {
  return static_cast<float>((static_cast<std::size_t>(shard) * 31 + element * 7 +
                             static_cast<std::size_t>(sum) * 13) %
                            97) *
             0.37F +
         static_cast<float>(shard) * 1e-3F;
}

std::vector<float> NodeOfLeaves(NodeIndex node, int sum) {
  const ShardBlock block = BlockOf(kShards, node);
  std::vector<float> values(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    std::vector<float> leaves;
    for (int shard = 0; shard < block.count; ++shard)
      leaves.push_back(Leaf(block.first + shard, i, sum));
    values[i] = SumTree<float>(leaves, std::plus<float>());
  }
  return values;
}

// One rank's process.
class Rank {
 public:
  Rank(Board& board, int number, std::uint64_t seed, const NcclRounds::Options& options = {})
      : board_(board), number_(number), random_(seed + static_cast<std::uint64_t>(number)) {
    driver_ = *CudaDriver::Open();
    int device = 0;
    Must(driver_->device_get(&device, 0));
    Must(driver_->primary_context_retain(&context_, device));
    current_.emplace(*driver_, context_);
    Must(driver_->stream_create(&stream_, kCudaNonBlockingStream));
    CudaPointer any = 0;
    Must(driver_->alloc(&any, 256));
    memory_ = *CudaMemory::Of(driver_, reinterpret_cast<const void*>(any));
    CHECK(memory_->UseStream(stream_).has_value(), "the stream");
    auto made = NcclRounds::Make(memory_, options);
    if (made) {
      rounds_ = *std::move(made);
    } else {
      refused_ = made.error().message;
    }
  }

  // Why there are no rounds. "": there are.
  const std::string& refused() const { return refused_; }

  // The first one makes the id, which all others wait for.
  Status Join(int rank, int ranks, int which = 0, bool all_reduce = false) {
    CHECK(refused_.empty(), refused_);
    if (rank == 0) {
      const auto id =
          Wait<Result<CommunicatorId>>([&](auto done) { rounds_->NewId(std::move(done)); });
      CHECK(id.has_value(), id.error().message);
      board_.id[which] = *id;
      board_.ids = which + 1;
    }
    while (board_.ids <= which) std::this_thread::sleep_for(milliseconds(1));
    rank_ = rank;
    ranks_ = ranks;
    return Wait<Status>([&](auto done) {
      rounds_->Join(
          {.id = board_.id[which], .rank = rank, .world_size = ranks, .all_reduce = all_reduce},
          std::move(done));
    });
  }

  // Sums once. CHECKs the result if there is one.
  Status Sum(int number, const std::vector<int>& host_of_rank = {}, bool all_reduce = false) {
    const ShardMap map = AssignShards(kShards, ranks_);
    const auto plan = std::make_shared<const ReductionPlan>(map, host_of_rank, rank_);
    std::vector<HeldNode> nodes;
    for (const NodeIndex node : plan->own())
      nodes.push_back({.node = node, .sum = OnDevice(NodeOfLeaves(node, number))});
    const BucketLayout layout(kElements, kBuckets);
    const FloatBuffer mean = OnDevice(std::vector<float>(kElements));
    rounds_->Begin({.plan = plan,
                    .all_reduce = all_reduce,
                    .buckets = layout,
                    .divisor = kDivisor,
                    .mean = mean});
    std::vector<std::uint32_t> order;
    for (std::uint32_t bucket = 0; bucket < layout.count(); ++bucket) order.push_back(bucket);
    std::ranges::shuffle(order, random_);
    for (const std::uint32_t bucket : order) {
      if (random_() % 4 == 0) std::this_thread::sleep_for(milliseconds(random_() % 2));
      rounds_->Add(nodes, bucket);
    }
    Status over = Wait<Status>([&](auto done) { rounds_->WhenOver(std::move(done)); });
    Must(driver_->stream_synchronize(stream_));  // it still copies to this memory
    CHECK(!mean.shared(), "the sum's memory is free");
    for (const HeldNode& node : nodes)
      CHECK(node.sum.owner().use_count() == 1, "so are its inputs");
    RETURN_IF_ERROR(over);
    const std::vector<float> root = NodeOfLeaves(kRootNode, number);
    const std::vector<float> got = Read(mean);
    for (std::size_t i = 0; i < kElements; ++i) {
      const float want = root[i] / kDivisor;
      const bool right = all_reduce ? std::abs(got[i] - want) < 1e-4F * want : got[i] == want;
      CHECK(right, Format("element {} of sum {}: {} instead of {}", i, number, got[i], want));
    }
    // They are needed again if a membership is lost now.
    for (const HeldNode& node : nodes)
      CHECK(Read(node.sum) == NodeOfLeaves(node.node, number), "inputs do not change");
    ++board_.sums[number_];
    return {};
  }

  void Abort() {
    Wait<bool>([&](auto done) { rounds_->Abort([done] { done(true); }); });
  }

  // Aborts what `work` does once a rank was lost, as the learner does. Returns when both are over.
  void UntilLost(const std::function<void()>& work) {
    std::atomic<bool> over = false;
    const std::jthread aborts([&] {
      while (!board_.lost) std::this_thread::sleep_for(milliseconds(1));
      // The work may be about to begin something.
      for (; !over; std::this_thread::sleep_for(milliseconds(1))) Abort();
      Abort();
    });
    work();
    over = true;
  }

 private:
  static void Must(int result) { CHECK(result == kCudaSuccess, "CUDA works"); }

  template <typename T>
  static T Wait(const std::function<void(std::function<void(T)>)>& begin) {
    struct Answer {
      std::mutex mutex;
      std::optional<T> value;
    };
    const auto answer = std::make_shared<Answer>();
    begin([answer](T value) {
      const std::lock_guard lock(answer->mutex);
      answer->value = std::move(value);
    });
    const auto end = steady_clock::now() + kPatience;
    for (;;) {
      {
        const std::lock_guard lock(answer->mutex);
        if (answer->value) return *answer->value;
      }
      CHECK(steady_clock::now() < end, "it ends");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  FloatBuffer OnDevice(const std::vector<float>& values) {
    FloatBuffer buffer(values.size(), source_);
    const std::vector<float>& kept = kept_.emplace_back(values);  // until the copy was made
    Must(driver_->copy_to_device(CudaAddress(buffer.view().data()), kept.data(),
                                 kept.size() * sizeof(float), stream_));
    return buffer;
  }

  std::vector<float> Read(const FloatBuffer& buffer) {
    std::vector<float> values(buffer.view().size());
    Must(driver_->copy_to_host(values.data(), CudaAddress(buffer.view().data()),
                               values.size() * sizeof(float), stream_));
    Must(driver_->stream_synchronize(stream_));
    return values;
  }

  class DeviceSource final : public MemorySource {
   public:
    explicit DeviceSource(const std::shared_ptr<CudaMemory>& memory) : memory_(memory) {}
    std::shared_ptr<std::byte> Allocate(std::size_t bytes) override {
      return *memory_->Allocate(bytes);
    }

   private:
    const std::shared_ptr<CudaMemory>& memory_;
  };

  Board& board_;
  const int number_;
  int rank_ = 0;
  int ranks_ = 1;
  std::mt19937_64 random_;
  std::shared_ptr<const CudaDriver> driver_;
  CudaContext context_ = nullptr;
  std::optional<CurrentCudaContext> current_;
  CudaStream stream_ = nullptr;
  std::shared_ptr<CudaMemory> memory_;
  DeviceSource source_{memory_};
  std::deque<std::vector<float>> kept_;
  std::unique_ptr<NcclRounds> rounds_;
  std::string refused_;
};

class NcclRoundsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL) == nullptr)
      GTEST_SKIP() << "no NCCL: " << ::dlerror();
    is_fake_ = ::dlsym(::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL), "FakeCudaViolation");
    void* const memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    board_ = new (memory) Board;
  }
  void TearDown() override { EndAll(); }

  using Body = std::function<void(Rank& rank)>;
  struct Process {
    std::uint64_t seed = 1;
    std::vector<std::pair<std::string, std::string>> environment = {};
    NcclRounds::Options options = {};
  };

  // A process in which `body` runs. Its exit code is 0 if nothing was wrong.
  void Start(int number, const Process& process, const Body& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::setenv("NCCL_HOSTID", std::to_string(number).c_str(), 1);
      ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
      const std::string seed =
          std::to_string(process.seed * kMaxRanks + static_cast<std::uint64_t>(number));
      ::setenv("FAKE_CUDA_SEED", seed.c_str(), 1);
      ::setenv("FAKE_NCCL_SEED", std::to_string(process.seed).c_str(), 1);
      for (const auto& [name, value] : process.environment)
        ::setenv(name.c_str(), value.c_str(), 1);
      {
        Rank rank(*board_, number, process.seed, process.options);
        body(rank);
      }
      if (const std::string found = FoundViolation(); !found.empty()) {
        std::snprintf(board_->said[number], sizeof board_->said[number], "%s", found.c_str());
        ::_exit(9);
      }
      ::_exit(0);
    }
    pids_[static_cast<std::size_t>(number)] = pid;
  }

  // Waits for the process; its exit code, or the negative signal.
  int End(int number) {
    int status = 0;
    pid_t& pid = pids_[static_cast<std::size_t>(number)];
    ::waitpid(pid, &status, 0);
    pid = 0;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }
  void ExpectAllEndWell(int from, int to) {
    for (int number = from; number < to; ++number) {
      EXPECT_EQ(End(number), 0) << "rank " << number << ": " << board_->said[number];
    }
  }
  void EndAll() {
    for (std::size_t number = 0; number < pids_.size(); ++number) {
      if (pids_[number] == 0) continue;
      ::kill(pids_[number], SIGKILL);
      End(static_cast<int>(number));
    }
  }
  void NewBoard() { new (board_) Board; }

  // A rank dies in this state of the communicator; the others abort, and continue without it.
  void LoseOneIn(const std::string& state, int at, std::uint64_t seed) {
    NewBoard();
    constexpr int kRanks = 3;
    const int victim = static_cast<int>(seed % kRanks);
    for (int number = 0; number < kRanks; ++number) {
      Process process{.seed = seed};
      if (number == victim)
        process.environment = {{"FAKE_NCCL_DIES", state},
                               {"FAKE_NCCL_DIES_AT", std::to_string(at)}};
      Start(number, process, [=](Rank& rank) {
        rank.UntilLost([&] {
          Status status = rank.Join(number, kRanks);
          const bool dies_aborting = number == victim && state == "aborting";
          for (int sum = 0; status && !(dies_aborting && sum == 3); ++sum) status = rank.Sum(sum);
          if (dies_aborting) rank.Abort();
        });
        const Status again = rank.Join(number - (number > victim ? 1 : 0), kRanks - 1, 1);
        CHECK(again.has_value(), again.error().message);
        for (int sum = 0; sum < 3; ++sum) {
          const Status summed = rank.Sum(100 + sum);
          CHECK(summed.has_value(), summed.error().message);
        }
      });
    }
    EXPECT_EQ(End(victim), -SIGKILL);
    board_->lost = true;
    for (int number = 0; number < kRanks; ++number) {
      if (number == victim) continue;
      EXPECT_EQ(End(number), 0) << number << ": " << board_->said[number];
    }
  }

  Board* board_ = nullptr;
  bool is_fake_ = false;
  std::vector<pid_t> pids_ = std::vector<pid_t>(kMaxRanks);
};

TEST_F(NcclRoundsTest, GivesTheBitsOfTheTree) {
  for (const int ranks : {1, 2, 3, 4}) {
    NewBoard();
    SCOPED_TRACE(ranks);
    for (int number = 0; number < ranks; ++number) {
      Start(number, {}, [=](Rank& rank) {
        const Status joined = rank.Join(number, ranks);
        CHECK(joined.has_value(), joined.error().message);
        for (int sum = 0; sum < 5; ++sum) {
          const Status summed = rank.Sum(sum);
          CHECK(summed.has_value(), summed.error().message);
        }
      });
    }
    ExpectAllEndWell(0, ranks);
  }
}

TEST_F(NcclRoundsTest, AddsUpOnHostsFirst) {
  constexpr int kRanks = 5;
  for (int number = 0; number < kRanks; ++number) {
    Start(number, {}, [=](Rank& rank) {
      CHECK(rank.Join(number, kRanks).has_value(), "joined");
      for (int sum = 0; sum < 3; ++sum) CHECK(rank.Sum(sum, {0, 0, 0, 1, 1}).has_value(), "summed");
    });
  }
  ExpectAllEndWell(0, kRanks);
}

TEST_F(NcclRoundsTest, LetsNcclAddWhereTheOrderIsFree) {
  for (int number = 0; number < 3; ++number) {
    Start(number, {}, [=](Rank& rank) {
      CHECK(rank.Join(number, 3, 0, /*all_reduce=*/true).has_value(), "joined");
      for (int sum = 0; sum < 3; ++sum)
        CHECK(rank.Sum(sum, {}, /*all_reduce=*/true).has_value(), "summed");
    });
  }
  ExpectAllEndWell(0, 3);
}

TEST_F(NcclRoundsTest, SurvivesALossInEachState) {
  if (!is_fake_) GTEST_SKIP() << "only the stand-in dies in a chosen state";
  const std::vector<std::pair<std::string, int>> states = {
      {"creating", 1}, {"warming", 1}, {"round", 40}, {"aborting", 1}};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto& [state, times] = states[seed % states.size()];
    const int at = static_cast<int>(seed / states.size()) % times;
    SCOPED_TRACE(Format("seed {}: {} {}", seed, state, at));
    LoseOneIn(state, at, seed);
    if (HasFailure()) return;
  }
}

TEST_F(NcclRoundsTest, SurvivesAKill) {
  for (std::uint64_t seed = 0; seed < (is_fake_ ? 20 : 4); ++seed) {
    SCOPED_TRACE(seed);
    NewBoard();
    for (int number = 0; number < 3; ++number) {
      Start(number, {.seed = seed}, [=](Rank& rank) {
        rank.UntilLost([&] {
          Status status = rank.Join(number, 3);
          for (int sum = 0; status; ++sum) status = rank.Sum(sum);
        });
        if (number == 0) ::pause();  // it is about to be killed
        CHECK(rank.Join(number - 1, 2, 1).has_value(), "joined again");
        CHECK(rank.Sum(1).has_value(), "summed again");
      });
    }
    while (board_->ids == 0 || board_->sums[0] < static_cast<int>(seed % 7))
      std::this_thread::sleep_for(milliseconds(1));
    // The others may also learn of it before NCCL does, in the midst of what they exchange.
    board_->lost = seed % 3 == 0;
    if (board_->lost) std::this_thread::sleep_for(milliseconds(1 + seed / 3));
    ::kill(pids_[0], SIGKILL);
    EXPECT_EQ(End(0), -SIGKILL);
    board_->lost = true;
    ExpectAllEndWell(1, 3);
    if (HasFailure()) return;
  }
}

TEST_F(NcclRoundsTest, WaitsForNobodyForever) {
  Start(0, {.options = {.max_creation = milliseconds(300)}}, [](Rank& rank) {
    const Status joined = rank.Join(0, 2);
    CHECK(!joined && joined.error().code == ErrorCode::kTimeout, "the other one never comes");
    const Status summed = rank.Sum(0);
    CHECK(!summed && summed.error().code == ErrorCode::kUnavailable, "there is no communicator");
  });
  EXPECT_EQ(End(0), 0) << board_->said[0];
  NewBoard();
  for (int number = 0; number < 2; ++number) {
    Start(number, {.options = {.max_shard = milliseconds(100)}}, [=](Rank& rank) {
      CHECK(rank.Join(number, 2).has_value(), "joined");
      if (number == 0) return std::this_thread::sleep_for(milliseconds(1500));
      const Status summed = rank.Sum(0);
      CHECK(!summed && summed.error().code == ErrorCode::kTimeout, "the other one does nothing");
    });
  }
  ExpectAllEndWell(0, 2);
}

TEST_F(NcclRoundsTest, RefusesCommunicatorsThatBlock) {
  Start(0, {.environment = {{"NCCL_COMM_BLOCKING", "1"}}}, [](const Rank& rank) {
    CHECK(rank.refused().starts_with("NCCL_COMM_BLOCKING is 1: "), rank.refused());
  });
  Start(1, {.environment = {{"NCCL_COMM_BLOCKING", "0"}}},
        [](const Rank& rank) { CHECK(rank.refused().empty(), rank.refused()); });
  ExpectAllEndWell(0, 2);
}

TEST_F(NcclRoundsTest, ReportsACreationThatFails) {
  if (!is_fake_) GTEST_SKIP() << "only the stand-in fails on demand";
  Start(0, {.environment = {{"FAKE_NCCL_CREATION", "fails"}}}, [](Rank& rank) {
    const Status joined = rank.Join(0, 2);
    CHECK(!joined && joined.error().message == "NCCL: making a communicator: internal error",
          joined ? "it has not failed" : joined.error().message);
  });
  EXPECT_EQ(End(0), 0) << board_->said[0];
}

}  // namespace
}  // namespace pliant
