// A learner takes its memory in the first ticks of a membership, and uses it again from then on.

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/real_event_loop.h"
#include "tests/unit/runtime/counted_new.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/collective/shared_memory.h"
#include "trainer/collective/tcp_transport.h"
#include "trainer/runtime/compute.h"
#include "trainer/runtime/learner_loop.h"

namespace pliant {
namespace {

constexpr std::size_t kElements = 100'000;
constexpr int kShards = 8;
constexpr int kQuietTicks = 30;  // behind each other
constexpr std::uint64_t kTicksMost = 500;

// Time stands still for the learner: no heartbeat and no line of metrics is due.
class StillLoop final : public EventLoop {
 public:
  explicit StillLoop(EventLoop& loop) : loop_(loop), now_(loop.Now()) {}
  TimePoint Now() const override { return now_; }
  void Post(std::function<void()> task) override { loop_.Post(std::move(task)); }
  TimerId PostAfter(Duration delay, std::function<void()> task) override {
    return loop_.PostAfter(delay, std::move(task));
  }
  void Cancel(TimerId timer) override { loop_.Cancel(timer); }

 private:
  EventLoop& loop_;
  const TimePoint now_;
};

class NoMetrics final : public MetricsSink {
 public:
  void Append(Tick, std::string_view) override {}
  void CutFrom(Tick) override {}
};

class ConstantProgram final : public Program {
 public:
  explicit ConstantProgram(std::function<void(std::uint64_t step)> on_commit)
      : on_commit_(std::move(on_commit)) {}
  const ProgramInfo& info() const override { return info_; }
  Result<ShardSums> ComputeShard(const ShardTask& task, std::span<float> gradient,
                                 std::span<std::byte> buffers, GradientSink* sink) override {
    std::ranges::fill(gradient, 1.0F);
    std::ranges::fill(buffers, std::byte{1});
    if (sink != nullptr) sink->OnReady({.begin = kElements / 2, .size = kElements / 2});
    return ShardSums{.samples = static_cast<double>(task.samples.size())};
  }
  Status Commit(const CommitTask& task) override {
    on_commit_(task.step);
    return {};
  }
  StateDict State() override { return {}; }
  Status LoadedState() override { return {}; }

 private:
  const ProgramInfo info_{.gradient_elements = kElements, .buffer_bytes = 100, .name = "constant"};
  const std::function<void(std::uint64_t step)> on_commit_;
};

// Says once who the members are.
class OneMembership final : public CoordinatorLink {
 public:
  OneMembership(EventLoop& loop, const Membership& membership)
      : loop_(loop), membership_(membership) {}
  void Start(CoordinatorHandler* handler) override {
    loop_.Post([this, handler] {
      handler->OnCoordinatorConnected();
      handler->OnCoordinatorMessage(Welcome{.term = 1, .heartbeat_seconds = 3600});
      handler->OnCoordinatorMessage(Recover{membership_});
    });
  }
  void Send(const LearnerMessage&) override {}
  void Redial() override {}

 private:
  EventLoop& loop_;
  const Membership& membership_;
};

struct WorldOptions {
  int learners = 1;
  int ranks = 1;  // of each
  std::string peer_key = {};
  bool shared_memory = false;
};

class World {
 public:
  explicit World(const WorldOptions& options) : still_(loop_), schedule_(*Schedule::Make(kData)) {
    if (options.shared_memory) {
      std::string name = std::filesystem::temp_directory_path() / "pliant-shm-XXXXXX";
      CHECK(::mkdtemp(name.data()) != nullptr, "a folder for sockets");
      folder_ = name;
    }
    membership_.id = {.term = 1, .counter = 1};
    const int members = options.learners * options.ranks;
    for (int i = 0; i < members; ++i) {
      auto member = std::make_unique<Process>();
      const std::string number = std::to_string(i / options.ranks);
      member->id = {.name = "digits-1a2b3-" + number,
                    .pod_uid = "a-rather-long-uid-" + number,
                    .nonce = 7,
                    .local_rank = i % options.ranks};
      if (members > 1) {
        member->transport = *MakeTcpTransport(loop_, {.self = member->id,
                                                      .peer_key = options.peer_key,
                                                      .shared_memory_folder = folder_,
                                                      .shared_memory = &member->memory});
        membership_.members.push_back({member->id, member->transport->address()});
      }
      members_.push_back(std::move(member));
    }
    for (const auto& member : members_) Begin(*member);
  }
  ~World() {
    members_.clear();
    if (!folder_.empty()) std::filesystem::remove(folder_);
  }

  // Runs until so many ticks behind each other took no memory, of no member on no thread. What a
  // peer or another thread holds on to differs from tick to tick, so it takes some time until there
  // is enough of everything.
  bool ComesToTakeNone() {
    for (const auto& member : members_) member->loop->Start();
    loop_.Run();
    return quiet_ticks_ >= kQuietTicks;
  }

 private:
  static constexpr DataSpec kData = {.train_samples = (kTicksMost + 1) * 4 * kShards,
                                     .epochs = 1,
                                     .global_batch_size = 4 * kShards,
                                     .logical_shards = kShards};
  struct Process {
    LearnerId id;
    SharedMemory memory;
    std::unique_ptr<PeerTransport> transport;
    std::unique_ptr<OneMembership> link;
    std::unique_ptr<ConstantProgram> program;
    std::unique_ptr<Compute> compute;
    std::unique_ptr<Checkpointer> checkpointer;
    std::unique_ptr<LearnerLoop> loop;
  };

  void Count(std::uint64_t step) {
    const std::uint64_t allocations = Allocations();
    quiet_ticks_ = allocations == allocations_ ? quiet_ticks_ + 1 : 0;
    allocations_ = allocations;
    if (quiet_ticks_ >= kQuietTicks || step == kTicksMost) loop_.Stop();
  }

  void Begin(Process& member) {
    const bool counts = &member == members_.front().get();
    member.program = std::make_unique<ConstantProgram>([this, counts](std::uint64_t step) {
      if (counts) Count(step);
    });
    MemorySource& memory = folder_.empty() ? HeapMemory() : member.memory;
    member.compute =
        NewThreadedCompute(still_, *member.program,
                           ShardFolder(member.program->info().gradient_elements, kShards, memory));
    member.checkpointer = NewThreadedCheckpointer(loop_, std::make_unique<MemoryStore>());
    if (member.transport) member.link = std::make_unique<OneMembership>(loop_, membership_);
    member.loop = std::make_unique<LearnerLoop>(LearnerOptions{.self = member.id}, schedule_,
                                                LearnerParts{.loop = still_,
                                                             .link = member.link.get(),
                                                             .transport = member.transport.get(),
                                                             .compute = *member.compute,
                                                             .checkpointer = *member.checkpointer,
                                                             .metrics = metrics_,
                                                             .gradients = memory},
                                                [](const LearnerExit&) {});
  }

  RealEventLoop loop_;
  StillLoop still_;
  const Schedule schedule_;
  NoMetrics metrics_;
  Membership membership_;
  std::filesystem::path folder_;
  std::vector<std::unique_ptr<Process>> members_;
  std::uint64_t allocations_ = 0;
  int quiet_ticks_ = 0;
};

// What stays, and is not in here: a line of metrics and a heartbeat, each once a second, and a
// comparison of states every hundred steps. OpenSSL, whose memory is not counted, takes 40 bytes
// for each record that it writes.
TEST(Allocations, ATickTakesNone) {
  const std::string peer_key = "a key";
  EXPECT_TRUE(World({.learners = 1}).ComesToTakeNone());
  EXPECT_TRUE(World({.learners = 2}).ComesToTakeNone());
  EXPECT_TRUE(World({.learners = 3, .peer_key = peer_key}).ComesToTakeNone()) << "over TLS";
  EXPECT_TRUE(
      World({.learners = 2, .peer_key = peer_key, .shared_memory = true}).ComesToTakeNone());
  EXPECT_TRUE(World({.learners = 2, .ranks = 2, .peer_key = peer_key, .shared_memory = true})
                  .ComesToTakeNone());
}

}  // namespace
}  // namespace pliant
