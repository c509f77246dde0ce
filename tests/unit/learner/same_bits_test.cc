// The guarantee of bitwise mode, for everything that a model file can configure: parameters,
// optimizer state and evaluation have the same bits, whatever the number of learners in each tick.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simulation/run_shards.h"
#include "tests/unit/learner/one_learner.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/checkpoint/state_copy.h"
#include "trainer/collective/gradient_accumulator.h"
#include "trainer/collective/reduction.h"
#include "trainer/data/schedule.h"
#include "trainer/protocol/tick_round.h"

namespace pliant::learner {
namespace {

constexpr int kShards = 8;
// Batches of 16: three full ones and one of 5, which leaves shards empty.
constexpr std::uint64_t kSamples = 53;
constexpr std::uint64_t kBatch = 16;
constexpr std::uint64_t kEpochs = 2;

struct ModelCase {
  std::string name;
  ModelSpec model;
};

ModelSpec RichModel() {
  return {.name = "rich",
          .input = {1, 8, 8},
          .layers = {Conv{.out = 6, .kernel = 3, .padding = 1}, BatchNorm{}, Relu{},
                     Residual{.layers = {Conv{.out = 6, .kernel = 3, .padding = 1}, BatchNorm{},
                                         Dropout{.rate = 0.2}},
                              .shortcut = {}},
                     Relu{},
                     Residual{.layers = {Conv{.out = 8, .kernel = 3, .stride = 2, .padding = 1},
                                         BatchNorm{}, Relu{},
                                         Residual{.layers = {Conv{.out = 8, .kernel = 1}},
                                                  .shortcut = {}}},
                              .shortcut = {Conv{.out = 8, .kernel = 1, .stride = 2}, BatchNorm{}}},
                     AvgPool{.kernel = 2, .stride = 2}, Flatten{}, Dropout{.rate = 0.5},
                     Linear{.out = 10}},
          .train = {.epochs = kEpochs,
                    .learning_rate = 0.05,
                    .weight_decay = 0.01,
                    .optimizer = Sgd{.momentum = 0.9, .nesterov = true},
                    .schedule = {.kind = LearningRateSchedule::Kind::kStep,
                                 .warmup_epochs = 0.5,
                                 .at_epochs = {1.5},
                                 .factor = 0.3},
                    .clip_norm = 0.5},
          .data = {.augment = {.crop_padding = 2, .horizontal_flip = true}}};
}

std::vector<ModelCase> Models() {
  ModelSpec adam = RichModel();
  adam.train.optimizer = AdamW{};
  adam.train.schedule = {.kind = LearningRateSchedule::Kind::kCosine,
                         .warmup_epochs = 0.25,
                         .at_epochs = {},
                         .least = 0.01};
  adam.train.label_smoothing = 0.1;
  return {{"SGD", RichModel()}, {"AdamW", adam}};
}

Schedule DataSchedule(std::uint64_t samples = kSamples) {
  return *Schedule::Make({.train_samples = samples,
                          .test_samples = 21,
                          .epochs = kEpochs,
                          .global_batch_size = kBatch,
                          .logical_shards = kShards,
                          .seed = 11});
}

std::unique_ptr<TorchProgram> NewProgram(const ModelSpec& model, std::uint64_t samples,
                                         std::uint64_t seed) {
  auto program =
      TorchProgram::Create(model, RandomDigits(samples, 1), RandomDigits(21, 2),
                           {.seed = seed, .steps_per_epoch = StepsPerEpoch(samples, kBatch)});
  if (!program) std::abort();
  return *std::move(program);
}

std::array<std::uint64_t, 3> Bits(const ShardSums& sums) {
  const std::array<double, 3> numbers = {sums.samples, sums.loss, sums.correct};
  return std::bit_cast<std::array<std::uint64_t, 3>>(numbers);
}

// The learners of one job in one process: the components of a learner, connected by queues instead
// of a network.
class Learners {
 public:
  explicit Learners(const ModelSpec& model, std::uint64_t samples = kSamples)
      : model_(model), samples_(samples) {}

  // The seed of a new learner does not matter: it takes over the state of others, or a checkpoint.
  void Resize(std::size_t count) {
    while (members_.size() > count) members_.erase(members_.begin());  // the oldest leave first
    while (members_.size() < count) {
      auto member = std::make_unique<Member>(NewProgram(model_, samples_, founded_ ? 99 : 1));
      if (!members_.empty()) member->Load(members_.front()->program->State());
      founded_ = true;
      members_.push_back(std::move(member));
    }
  }
  void Load(const StateDict& state) {
    for (const auto& member : members_) member->Load(state);
  }
  StateDict State() const { return members_.front()->program->State(); }
  std::size_t count() const { return members_.size(); }

  // Runs one tick on all learners. Returns the sums, which are the same on all.
  ShardSums Train(const Schedule& schedule, Tick tick) {
    const ShardMap map = AssignShards(kShards, static_cast<int>(count()));
    const TickPlan plan = schedule.At(tick);
    const bool train = plan.kind == TickKind::kTrain;
    Network network;
    std::vector<TickRound> rounds;
    std::vector<std::unique_ptr<Reduction>> reductions;
    for (int rank = 0; rank < map.world_size(); ++rank) {
      rounds.emplace_back().Begin(map, rank, train, std::vector<bool>(count(), true));
      reductions.push_back(
          std::make_unique<Reduction>(members_.front()->program->info().gradient_elements,
                                      [&network, rank](int to, Frame frame) {
                                        network.push_back({rank, to, std::move(frame)});
                                      }));
      if (!train) continue;
      reductions.back()->Begin(
          {.membership = {1, 1},
           .tick = tick,
           .plan = std::make_shared<const ReductionPlan>(map, std::vector<int>{}, rank),
           .divisor = static_cast<float>(plan.samples),
           .buckets = BucketsOf(tick)});
    }
    for (int rank = 0; rank < map.world_size(); ++rank) {
      ComputePart(schedule, tick, map, rank, rounds, *reductions[static_cast<std::size_t>(rank)]);
    }
    for (; !network.empty(); network.pop_front()) {
      const Sent& next = network.front();
      EXPECT_TRUE(reductions[static_cast<std::size_t>(next.to)]->OnFrame(next.from, next.frame));
    }
    for (std::size_t rank = 0; rank < count(); ++rank) {
      EXPECT_TRUE(rounds[rank].done());
      EXPECT_EQ(Bits(rounds[rank].Outcome().sums), Bits(rounds[0].Outcome().sums));
      if (!train) continue;
      EXPECT_TRUE(reductions[rank]->done());
      const Status status = members_[rank]->program->Commit({.epoch = plan.epoch,
                                                             .step = plan.step,
                                                             .schedule_step = plan.schedule_step,
                                                             .gradient = reductions[rank]->root(),
                                                             .buffers = rounds[rank].buffers().view,
                                                             .sums = rounds[rank].Outcome().sums});
      EXPECT_TRUE(status) << status.error();
    }
    return rounds[0].Outcome().sums;
  }

 private:
  struct Member {
    explicit Member(std::unique_ptr<TorchProgram> made)
        : program(std::move(made)), accumulator(program->info().gradient_elements, kShards) {}
    void Load(const StateDict& state) {
      EXPECT_TRUE(CopyState(state, program->State()));
      EXPECT_TRUE(program->LoadedState());
    }
    std::unique_ptr<TorchProgram> program;
    GradientAccumulator accumulator;
  };
  struct Sent {
    int from = 0;
    int to = 0;
    Frame frame;
  };
  using Network = std::deque<Sent>;

  // Bucket sizes differ from tick to tick, because no bit may depend on them.
  static BucketSizes BucketsOf(Tick tick) {
    return {.first = 50 * (1 + tick % 3), .rest = 500 * (1 + tick % 2)};
  }

  void ComputePart(const Schedule& schedule, Tick tick, const ShardMap& map, int rank,
                   std::vector<TickRound>& rounds, Reduction& reduction) {
    Member& member = *members_[static_cast<std::size_t>(rank)];
    TickWork work{.kind = schedule.At(tick).kind,
                  .blocks = map.blocks_of_rank[static_cast<std::size_t>(rank)],
                  .tasks = {},
                  .buckets = BucketsOf(tick)};
    for (const int shard : map.ShardsOf(rank)) work.tasks.push_back(schedule.TaskOf(tick, shard));
    if (work.kind == TickKind::kTrain) member.accumulator.Begin(kShards, work.blocks, work.buckets);
    TickOutput output;
    const Status status = RunShards(
        *member.program, member.accumulator, buffers_, work,
        [&](const NodePart& part) { reduction.AddLocal(part.node, part.bucket); }, output);
    if (!status) return ADD_FAILURE() << status.error(), void();
    Trailer trailer;
    for (std::size_t i = 0; i < work.tasks.size(); ++i) {
      trailer.shards.push_back({.shard = work.tasks[i].shard, .sums = output.shards[i].sums});
    }
    for (int to = 0; to < map.world_size(); ++to) {
      TickRound& round = rounds[static_cast<std::size_t>(to)];
      if (to == rank) {
        round.OnLocal(trailer, output.buffers);
        continue;
      }
      EXPECT_TRUE(round.OnTrailer(rank, trailer));
      const bool has_buffers = work.kind == TickKind::kTrain && round.buffers_rank() == rank;
      EXPECT_TRUE(!has_buffers || round.OnBuffers(rank, output.buffers));
    }
  }

  const ModelSpec& model_;
  const std::uint64_t samples_;
  BytePool buffers_{0};
  std::vector<std::unique_ptr<Member>> members_;
  bool founded_ = false;
};

// FNV-1a of the whole state.
std::uint64_t Digest(const StateDict& state) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const TensorView& view : state) {
    for (const std::byte byte : view.bytes) {
      hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
    }
  }
  return hash;
}

struct Record {
  std::vector<std::uint64_t> digests;              // of the state after each tick
  std::vector<std::array<std::uint64_t, 3>> sums;  // the bits of ShardSums: NaN equals itself
  std::string parameters_sha256;
  std::int64_t skipped_last = 0;  // number of consecutive skipped steps at the end
};

Record TrainWith(const ModelSpec& model, const std::function<std::size_t(Tick)>& world_size,
                 std::uint64_t samples = kSamples) {
  const Schedule schedule = DataSchedule(samples);
  Learners learners(model, samples);
  Record run;
  for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
    learners.Resize(world_size(tick));
    run.sums.push_back(Bits(learners.Train(schedule, tick)));
    run.digests.push_back(Digest(learners.State()));
  }
  run.parameters_sha256 = ParametersSha256(learners.State());
  const StateDict state = learners.State();
  EXPECT_EQ(state.back().name, "optimizer.non_finite_in_a_row");
  std::memcpy(&run.skipped_last, state.back().bytes.data(), sizeof(run.skipped_last));
  return run;
}

void ExpectSame(const Record& run, const Record& reference, const std::string& what) {
  EXPECT_EQ(run.parameters_sha256, reference.parameters_sha256) << what;
  EXPECT_EQ(run.sums, reference.sums) << what;
  EXPECT_EQ(run.digests, reference.digests) << what;
}

TEST(SameBits, HoldForAnyNumberOfLearnersOverTime) {
  constexpr std::size_t kWorlds[] = {1, 2, 3, 4, 3, 1, 4, 2, 1, 3, 2, 4, 1};
  for (const auto& [name, model] : Models()) {
    const Record alone = TrainWith(model, [](Tick) { return std::size_t{1}; });
    for (const std::size_t count : {2U, 3U, 4U}) {
      const Record run = TrainWith(model, [count](Tick) { return count; });
      ExpectSame(run, alone, name + " with " + std::to_string(count) + " learners");
    }
    const Record changing =
        TrainWith(model, [&](Tick tick) { return kWorlds[tick % std::size(kWorlds)]; });
    ExpectSame(changing, alone, name + " with a change before every tick");
  }
}

// A full batch and a remainder per epoch: from one sample, where most learners have none, to one
// more than one sample per shard.
TEST(SameBits, HoldForAnyLastBatchOfAnEpoch) {
  // The ticks of an epoch: the full batch, the remainder if there is one, two of evaluation.
  constexpr std::size_t kWorlds[] = {1, 8, 3, 2, 5, 4, 1, 8};
  const ModelSpec model = RichModel();
  for (const int rest : {0, 1, kShards - 1, kShards, kShards + 1}) {
    const std::uint64_t samples = kBatch + static_cast<std::uint64_t>(rest);
    const std::string what = std::to_string(rest) + " samples left, ";
    const auto with = [&](const std::function<std::size_t(Tick)>& world_size) {
      return TrainWith(model, world_size, samples);
    };
    const Record alone = with([](Tick) { return std::size_t{1}; });
    EXPECT_EQ(alone.digests.size(), kEpochs * (rest == 0 ? 3 : 4));
    ExpectSame(with([](Tick) { return std::size_t{3}; }), alone, what + "3 learners");
    const Record changing = with([&](Tick tick) { return kWorlds[tick % std::size(kWorlds)]; });
    ExpectSame(changing, alone, what + "a change before every tick");
  }
}

// Without this test the two above would also pass if training did nothing, or if nothing were
// random.
TEST(SameBits, EverySettingMatters) {
  const auto hash = [](const ModelSpec& model) {
    return TrainWith(model, [](Tick) { return std::size_t{1}; }).parameters_sha256;
  };
  std::vector<std::string> hashes = {hash(RichModel())};
  const auto with = [&](auto change) {
    ModelSpec model = RichModel();
    change(model);
    hashes.push_back(hash(model));
  };
  with([](ModelSpec& model) { model.layers[8] = Dropout{.rate = 0.4}; });
  with([](ModelSpec& model) { model.data.augment.horizontal_flip = false; });
  with([](ModelSpec& model) { model.data.augment.crop_padding = 1; });
  with([](ModelSpec& model) { model.data.normalize.mean = {0.4}; });
  with([](ModelSpec& model) { model.train.clip_norm = std::nullopt; });
  with([](ModelSpec& model) { model.train.label_smoothing = 0.2; });
  with([](ModelSpec& model) { model.train.schedule.factor = 0.2; });
  with([](ModelSpec& model) { model.train.optimizer = Sgd{.momentum = 0.9}; });
  with([](ModelSpec& model) { model.train.optimizer = AdamW{}; });
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(hashes[i], hashes[j]) << i << " and " << j;
  }
}

// Training stops after any tick, and new programs continue it from its checkpoint.
TEST(SameBits, ACheckpointHoldsAllThatTrainingContinuesFrom) {
  const Schedule schedule = DataSchedule();
  const JobIdentity job = {.seed = 11, .global_batch_size = kBatch, .logical_shards = kShards};
  for (const auto& [name, model] : Models()) {
    const Record alone = TrainWith(model, [](Tick) { return std::size_t{1}; });
    std::size_t world_size = 1;
    auto learners = std::make_unique<Learners>(model);
    learners->Resize(world_size);
    MemoryStore store;
    for (Tick tick = 0; tick < schedule.total_ticks(); ++tick) {
      learners->Train(schedule, tick);
      const CheckpointLabel label = {.position = {.step = schedule.StepsBefore(tick + 1),
                                                  .tick = tick + 1,
                                                  .membership = {1, tick}},
                                     .job = job,
                                     .framework = TorchVersion()};
      ASSERT_TRUE(SaveCheckpoint(store, label, learners->State()));
      const auto restored = RestoreNewest(store, job);
      ASSERT_TRUE(restored) << restored.error();
      world_size = world_size % 3 + 1;
      learners = std::make_unique<Learners>(model);
      learners->Resize(world_size);
      learners->Load(restored->state.view());
      ASSERT_EQ(Digest(learners->State()), alone.digests[tick]) << name << ", tick " << tick;
    }
    EXPECT_EQ(ParametersSha256(learners->State()), alone.parameters_sha256) << name;
  }
}

// All learners skip a step whose reduced loss is not finite, whichever learner computed the shard.
TEST(SameBits, AllSkipWhatOneFoundNotFinite) {
  ModelSpec model = RichModel();
  model.train.on_non_finite_loss = OnNonFiniteLoss::kSkip;
  model.train.learning_rate = 1e25;  // diverges at once; from then on no loss is finite
  model.train.clip_norm = std::nullopt;
  model.train.schedule = {};
  const Record alone = TrainWith(model, [](Tick) { return std::size_t{1}; });
  const Record three = TrainWith(model, [](Tick) { return std::size_t{3}; });
  ExpectSame(three, alone, "three learners");
  EXPECT_EQ(alone.skipped_last, 7) << "the first step was taken";
}

}  // namespace
}  // namespace pliant::learner
