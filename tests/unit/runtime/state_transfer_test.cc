#include "trainer/runtime/state_transfer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "trainer/checkpoint/state_slice.h"

namespace pliant {
namespace {

// Tensors of some sizes, empty ones among them and one of several slices.
struct State {
  explicit State(std::byte fill) : big(2 * kStatePieceBytes + 4, fill), small(12, fill) {}
  StateDict dict() {
    return {
        {.name = "model.empty", .shape = {0}, .bytes = {}},
        {.name = "model.big", .shape = {static_cast<std::int64_t>(big.size() / 4)}, .bytes = big},
        {.name = "optimizer.small", .shape = {3}, .bytes = small},
        {.name = "optimizer.none", .shape = {0}, .bytes = {}}};
  }
  std::vector<std::byte> big;
  std::vector<std::byte> small;
};

std::vector<Frame> FramesOf(State& state) {
  std::vector<Frame> frames;
  StateSender({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(state.dict())))
      .SendAll([&](Frame frame) { frames.push_back(std::move(frame)); });
  return frames;
}

TEST(StateTransfer, ArrivesAsItWasSent) {
  State sent(std::byte{7});
  sent.big[5] = std::byte{9};
  const std::vector<Frame> frames = FramesOf(sent);
  ASSERT_EQ(frames.size(), 5U) << "three pieces of the big tensor, one of the small one, the end";
  State received(std::byte{0});
  StateReceiver receiver(received.dict());
  for (const Frame& frame : frames) {
    EXPECT_FALSE(receiver.done());
    ASSERT_TRUE(receiver.OnFrame(frame));
  }
  ASSERT_TRUE(receiver.done());
  EXPECT_EQ(receiver.applied_ticks(), 77U);
  EXPECT_EQ(received.big, sent.big);
  EXPECT_EQ(received.small, sent.small);
}

// Each batch ends with a frame that says so, but for the last: then all is there.
TEST(StateTransfer, WaitsBetweenBatchesToBeAskedForMore) {
  for (const std::size_t batch : {kStatePieceBytes / 2, kStatePieceBytes, 2 * kStatePieceBytes,
                                  2 * kStatePieceBytes + 4, 10 * kStatePieceBytes}) {
    SCOPED_TRACE(batch);
    State sent(std::byte{7});
    State received(std::byte{0});
    StateSender sender({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(sent.dict())));
    StateReceiver receiver(received.dict());
    int batches = 0;
    for (bool more = true; more; ++batches) {
      std::size_t bytes = 0;
      more = false;
      sender.SendBatch(batch, [&](const Frame& frame) {
        EXPECT_FALSE(more) << "nothing comes after the last of a batch";
        bytes += frame.payload.view.size();
        more = (frame.header.node & kLastOfBatch) != 0;
        ASSERT_TRUE(receiver.OnFrame(frame));
      });
      EXPECT_LE(bytes, batch);
      EXPECT_EQ(more, !sender.done());
      ASSERT_LT(batches, 20);
    }
    EXPECT_TRUE(receiver.done());
    EXPECT_EQ(received.big, sent.big);
    EXPECT_EQ(received.small, sent.small);
  }
}

TEST(StateTransfer, ComesInSlicesOfSeveral) {
  State sent(std::byte{7});
  const std::vector<int> sources = {0, 2, 3};
  State shape(std::byte{0});
  SlicedStateReceiver receiver(shape.dict(), sources);
  for (int index = 0; index < 3; ++index) {
    EXPECT_FALSE(receiver.done());
    const StateDict slice = SliceOf(sent.dict(), {.index = index, .count = 3});
    StateSender({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(slice)))
        .SendAll([&](const Frame& frame) {
          ASSERT_TRUE(receiver.OnFrame(sources[static_cast<std::size_t>(index)], frame));
          EXPECT_FALSE(receiver.OnFrame(1, frame)) << "it has no slice";
        });
  }
  ASSERT_TRUE(receiver.done());
  State received(std::byte{0});
  ASSERT_TRUE(CopyState(receiver.Take()->view(), received.dict()));
  EXPECT_EQ(received.big, sent.big);
  EXPECT_EQ(received.small, sent.small);
}

// What the members of `parts` send, each the tensors of these names.
std::vector<std::vector<Frame>> FramesOfParts(State& state,
                                              const std::vector<std::vector<std::string>>& parts) {
  std::vector<std::vector<Frame>> frames;
  for (const std::vector<std::string>& names : parts) {
    const StateDict whole = state.dict();
    StateDict part;
    for (const std::string& name : names)
      part.push_back(*std::ranges::find(whole, name, &TensorView::name));
    const auto places = PlacesIn(whole, part);
    EXPECT_TRUE(places);
    StateSender({1, 2}, 77, std::make_shared<const StateCopy>(StateCopy::Of(part)))
        .SendAll([&, &own = frames.emplace_back()](Frame frame) {
          frame.header.bucket = places->at(frame.header.bucket);
          own.push_back(std::move(frame));
        });
  }
  return frames;
}

const std::vector<std::vector<std::string>> kParts = {
    {"optimizer.small", "model.empty"}, {"model.big"}, {"optimizer.none"}, {}};

TEST(Parts, ComeFromAllInAnyOrder) {
  State sent(std::byte{7});
  sent.big[5] = std::byte{9};
  const auto frames = FramesOfParts(sent, kParts);
  for (const std::vector<int>& order : std::vector<std::vector<int>>{{0, 1, 2, 3}, {3, 1, 0, 2}}) {
    State shape(std::byte{0});
    PartsReceiver receiver(shape.dict(), 4);
    // One frame of each in turn.
    for (std::size_t i = 0; i < 4; ++i) {
      for (const int member : order) {
        const auto& of_member = frames[static_cast<std::size_t>(member)];
        if (i >= of_member.size()) continue;
        EXPECT_FALSE(receiver.done());
        ASSERT_TRUE(receiver.OnFrame(member, of_member[i]));
        EXPECT_EQ(receiver.has_all_of(member), i + 1 == of_member.size());
      }
    }
    ASSERT_TRUE(receiver.done());
    EXPECT_EQ(receiver.applied_ticks(), 77U);
    State received(std::byte{0});
    ASSERT_TRUE(CopyState(receiver.Take()->view(), received.dict()));
    EXPECT_EQ(received.big, sent.big);
    EXPECT_EQ(received.small, sent.small);
  }
}

TEST(Parts, ThatAreNotTheWholeAreRefused) {
  const std::vector<std::vector<std::string>> twice = {
      {"optimizer.small"}, {"model.big"}, {"optimizer.small"}, {}};
  const std::vector<std::vector<std::string>> lacking = {{"optimizer.small"}, {}, {}, {}};
  State sent(std::byte{7});
  auto other_tick = FramesOfParts(sent, kParts);
  other_tick[2].back().header.tick = 78;
  auto no_tensor = FramesOfParts(sent, kParts);
  no_tensor[0].front().header.bucket = 5;
  auto too_long = FramesOfParts(sent, kParts);
  too_long[0].front().payload = too_long[1].front().payload;
  auto more = FramesOfParts(sent, kParts);
  more[3].push_back(more[3].back());
  const struct {
    const char* name;
    std::vector<std::vector<Frame>> frames;
  } kCases[] = {
      {"a tensor in two parts", FramesOfParts(sent, twice)},
      {"a tensor in none", FramesOfParts(sent, lacking)},
      {"of two checkpoints", other_tick},
      {"of no tensor", no_tensor},
      {"a piece too long", too_long},
      {"more after the end", more},
  };
  for (const auto& c : kCases) {
    State shape(std::byte{0});
    PartsReceiver receiver(shape.dict(), 4);
    bool refused = false;
    for (int member = 0; member < 4; ++member) {
      for (const Frame& frame : c.frames[static_cast<std::size_t>(member)])
        refused = refused || !receiver.OnFrame(member, frame);
    }
    EXPECT_TRUE(refused) << c.name;
  }
}

TEST(BatchPace, IsThatOfTheSlowest) {
  BatchPace pace({0, 2, 3});
  const auto may_send = [&] {
    int batches = 0;
    for (; pace.MaySend() && batches < 10; ++batches) pace.OnSent();
    return batches;
  };
  EXPECT_EQ(may_send(), 2);
  pace.OnTaken(0);
  pace.OnTaken(2);
  pace.OnTaken(2);
  EXPECT_EQ(may_send(), 0) << "3 has taken none";
  pace.OnTaken(3);
  EXPECT_EQ(may_send(), 1);
  pace.OnTaken(1);  // none of them
  pace.OnTaken(3);
  pace.OnTaken(3);
  EXPECT_EQ(may_send(), 0) << "0 has taken one of three";
  for (int i = 0; i < 5; ++i) pace.OnTaken(0);
  EXPECT_EQ(may_send(), 1) << "2 has taken two, and nobody more than there were";
}

TEST(Parts, OfAnotherModelHaveNoPlace) {
  State state(std::byte{7});
  const StateDict shape = state.dict();
  EXPECT_EQ(PlacesIn(shape, {shape[2], shape[1]}), (std::vector<std::uint32_t>{2, 1, 4}));
  EXPECT_EQ(PlacesIn(shape, {}), (std::vector<std::uint32_t>{4}));
  TensorView other = shape[2];
  other.shape = {1, 3};
  EXPECT_FALSE(PlacesIn(shape, {other}));
  other = shape[2];
  other.dtype = DType::kInt32;
  EXPECT_FALSE(PlacesIn(shape, {other}));
  other = shape[2];
  other.name = "optimizer.large";
  EXPECT_FALSE(PlacesIn(shape, {other}));
}

TEST(StateTransfer, RefusesWhatDoesNotFit) {
  State sent(std::byte{7});
  const std::vector<Frame> frames = FramesOf(sent);
  State shape(std::byte{0});
  for (std::size_t missing = 0; missing < frames.size() - 1; ++missing) {
    StateReceiver receiver(shape.dict());
    bool refused = false;
    for (std::size_t i = 0; i < frames.size() && !refused; ++i) {
      if (i != missing) refused = !receiver.OnFrame(frames[i]);
    }
    EXPECT_TRUE(refused || !receiver.done()) << "without frame " << missing;
  }
  StateReceiver receiver(shape.dict());
  for (const Frame& frame : frames) ASSERT_TRUE(receiver.OnFrame(frame));
  EXPECT_FALSE(receiver.OnFrame(frames.back())) << "after the end";
}

}  // namespace
}  // namespace pliant
