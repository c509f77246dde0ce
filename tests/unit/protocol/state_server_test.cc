#include "trainer/protocol/state_server.h"

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

constexpr std::size_t kServedBatch = 64;

// A sender with this number of batches; the last one includes the end.
StateSender SenderOf(std::size_t batches, std::byte fill = std::byte{1}) {
  std::vector<std::byte> bytes((batches * kServedBatch) - 4, fill);
  const StateDict state{
      {.name = "model.w", .shape = {static_cast<std::int64_t>(bytes.size() / 4)}, .bytes = bytes}};
  return {{1, 1}, 5, std::make_shared<const StateCopy>(StateCopy::Of(state))};
}

struct Sent {
  std::map<int, int> batches;  // by rank
  std::map<int, std::vector<Frame>> frames;
  StateServer::SendTo To() {
    return [this](int rank, Frame frame) {
      if ((frame.header.node & kLastOfBatch) != 0) ++batches[rank];
      frames[rank].push_back(std::move(frame));
    };
  }
};

TEST(StateServer, SendsTheNextBatchWhenItIsAskedFor) {
  Sent sent;
  StateServer states(kServedBatch, sent.To());
  states.Begin(3, SenderOf(4));
  EXPECT_EQ(sent.batches[3], kBatchesUnderWay);
  states.SendNext(3);
  EXPECT_EQ(sent.batches[3], 3);
  states.SendNext(3);
  EXPECT_EQ(sent.batches[3], 3) << "after the last batch there is nothing to request";
  const auto& frames = sent.frames[3];
  EXPECT_TRUE(frames.back().payload.view.empty()) << "the frame that ends the state";
  EXPECT_EQ(frames.back().header.tick, 5U);
  const std::size_t all = frames.size();
  states.SendNext(3);
  EXPECT_EQ(sent.frames[3].size(), all);
}

TEST(StateServer, AStateOfOneBatchIsSentAtOnce) {
  Sent sent;
  StateServer states(kServedBatch, sent.To());
  states.Begin(0, SenderOf(1));
  EXPECT_EQ(sent.frames[0].size(), 2U);
  EXPECT_EQ(sent.batches[0], 0);
}

TEST(StateServer, ServesEachRankOnItsOwn) {
  Sent sent;
  StateServer states(kServedBatch, sent.To());
  states.Begin(1, SenderOf(6));
  states.Begin(2, SenderOf(6));
  states.SendNext(2);
  EXPECT_EQ(sent.batches, (std::map<int, int>{{1, 2}, {2, 3}}));
  states.SendNext(7);
  EXPECT_FALSE(sent.frames.contains(7)) << "nothing is in transit to it";
}

TEST(StateServer, ANewStateTakesThePlaceOfTheOneUnderWay) {
  Sent sent;
  StateServer states(kServedBatch, sent.To());
  states.Begin(1, SenderOf(6, std::byte{1}));
  sent.frames.clear();
  states.Begin(1, SenderOf(6, std::byte{2}));
  ASSERT_FALSE(sent.frames[1].empty());
  EXPECT_NE(sent.frames[1].front().header.node & kFirstStateFrame, 0U) << "from its beginning";
  states.SendNext(1);
  for (const Frame& frame : sent.frames[1]) EXPECT_EQ(frame.payload.view.front(), std::byte{2});
}

TEST(StateServer, ClearedItSendsNothing) {
  Sent sent;
  StateServer states(kServedBatch, sent.To());
  states.Begin(1, SenderOf(6));
  states.Clear();
  sent.frames.clear();
  states.SendNext(1);
  EXPECT_TRUE(sent.frames.empty());
}

}  // namespace
}  // namespace pliant
