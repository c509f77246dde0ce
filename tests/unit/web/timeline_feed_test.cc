#include "operator/web/timeline_feed.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/format.h"

namespace pliant::web {
namespace {
using namespace std::chrono_literals;
using history::Field;
using history::Kind;
using history::Observation;
using history::WallTime;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr WallTime kBegin{std::chrono::milliseconds{1'800'000'000'000}};

class FakeReader final : public TextStream {
 public:
  void Send(std::shared_ptr<const std::string> text) override { texts.push_back(std::move(text)); }
  void Close() override { is_open = false; }
  bool open() const override { return is_open; }

  std::string last() const { return texts.empty() ? "" : *texts.back(); }
  // The data of its last event.
  json data() const {
    const std::string event = last();
    return json::parse(event.substr(event.find("data: ") + 6));
  }

  std::vector<std::shared_ptr<const std::string>> texts;
  bool is_open = true;
};

Observation Job(const std::string& name, std::int64_t gpus) {
  return {{.kind = Kind::kJob, .name = name, .node = ""}, history::Values{{Field::kGpus, gpus}}};
}

class TimelineFeedTest : public testing::Test {
 protected:
  std::shared_ptr<FakeReader> Join(ServerRequest request = {}) {
    auto reader = std::make_shared<FakeReader>();
    refusal_ = feed_.Join(request, reader);
    return reader;
  }

  TimelineFeed feed_{"op-0_1f"};
  std::optional<ServerResponse> refusal_;
};

TEST_F(TimelineFeedTest, AReaderGetsTheStateThenEachChangeWithItsPlace) {
  feed_.Take(kBegin, {Job("a/x", 1)});
  const auto reader = Join();
  EXPECT_FALSE(refusal_);
  EXPECT_THAT(reader->last(), StartsWith("id: op-0_1f/1\nevent: frame\ndata: {"));
  EXPECT_EQ(reader->data()["frame"], json::parse(R"({"job":{"a/x":{"gpus":1}}})"));
  EXPECT_EQ(reader->data()["begin"], 1'800'000'000'000);
  feed_.Take(kBegin + 1s, {Job("a/x", 2), Job("a/y", 1)});
  EXPECT_EQ(reader->last(),
            "id: op-0_1f/3\nevent: changes\ndata: "
            R"([{"at":1800000001000,"job":"a/x","set":{"gpus":2}},)"
            R"({"at":1800000001000,"job":"a/y","set":{"gpus":1}}])"
            "\n\n");
  feed_.Take(kBegin + 6s, {});
  EXPECT_EQ(reader->last(), "id: op-0_1f/3\nevent: now\ndata: 1800000006000\n\n");
}

TEST_F(TimelineFeedTest, AReaderThatComesBackGetsWhatItMissed) {
  feed_.Take(kBegin, {Job("a/x", 1)});
  feed_.Take(kBegin + 1s, {Job("a/x", 2)});
  feed_.Take(kBegin + 2s, {Job("a/x", 3)});
  const auto reader = Join({.last_event_id = "op-0_1f/1"});
  EXPECT_THAT(reader->last(), StartsWith("id: op-0_1f/3\nevent: changes\n"));
  EXPECT_EQ(reader->data().size(), 2);
  EXPECT_EQ(reader->data()[0]["set"]["gpus"], 2);
}

TEST_F(TimelineFeedTest, AReaderOfAnotherReplicaOrOfNoKnownPlaceGetsTheState) {
  feed_.Take(kBegin, {Job("a/x", 1)});
  for (const char* id : {"op-1_2e/1", "op-0_1f/2", "op-0_1f/-1", "op-0_1f/1x", "op-0_1f", "/", "1",
                         "op-0_1f/99999999999999999999"}) {
    const auto reader = Join({.last_event_id = id});
    EXPECT_THAT(reader->last(), HasSubstr("event: frame\n")) << id;
    reader->texts.clear();
  }
}

TEST_F(TimelineFeedTest, AReaderMayBeginInThePast) {
  feed_.Take(kBegin, {Job("a/x", 1)});
  feed_.Take(kBegin + 10s, {Job("a/x", 2)});
  const json past = Join({.query = "from=1800000005000"})->data();
  EXPECT_EQ(past["frame"]["job"]["a/x"]["gpus"], 1);
  EXPECT_EQ(past["changes"].size(), 1);
  EXPECT_EQ(past["from"], 1'800'000'005'000);
  EXPECT_EQ(past["now"], 1'800'000'010'000);
  // Before its begin nothing is known.
  EXPECT_EQ(Join({.query = "from=0"})->data()["from"], 1'800'000'000'000);
  // The future is not known either.
  const json future = Join({.query = "from=9000000000000"})->data();
  EXPECT_EQ(future["from"], future["now"]);
  EXPECT_EQ(json::parse(feed_.Answer({.query = "from=9000000000000"}).body)["from"], future["now"]);
  for (const char* query :
       {"from=", "from=x", "to=1", "from=1&to=2", "from=99999999999999999999"}) {
    Join({.query = query});
    ASSERT_TRUE(refusal_) << query;
    EXPECT_EQ(refusal_->status, 400) << query;
    EXPECT_EQ(feed_.Answer({.query = query}).status, 400) << query;
  }
}

TEST_F(TimelineFeedTest, TheDocumentIsTheSame) {
  EXPECT_EQ(feed_.Answer({}).status, 503) << "nothing is recorded yet";
  Join();
  EXPECT_EQ(refusal_->status, 503);
  feed_.Take(kBegin, {Job("a/x", 1)});
  EXPECT_EQ(json::parse(feed_.Answer({}).body), Join()->data());
}

TEST_F(TimelineFeedTest, ReadersAndFramesAreBounded) {
  feed_.Take(kBegin, {Job("a/x", 1)});
  std::vector<std::shared_ptr<FakeReader>> readers;
  for (std::size_t i = 0; i < TimelineFeed::kMaxFrames; ++i) readers.push_back(Join());
  Join();
  ASSERT_TRUE(refusal_);
  EXPECT_THAT(refusal_->body, HasSubstr("begin at the same time"));
  EXPECT_EQ(refusal_->status, 503);
  while (readers.size() < TimelineFeed::kMaxReaders) {
    for (const auto& reader : readers) reader->texts.clear();  // they were sent
    readers.push_back(Join());
    ASSERT_FALSE(refusal_);
  }
  for (const auto& reader : readers) reader->texts.clear();
  Join();
  ASSERT_TRUE(refusal_);
  EXPECT_THAT(refusal_->body, HasSubstr("too many readers follow"));
  readers[0]->Close();
  Join();
  EXPECT_FALSE(refusal_) << "a reader that is gone makes room";
  readers[1]->texts.clear();
  feed_.Take(kBegin + 1s, {Job("a/x", 2)});
  EXPECT_EQ(readers[1]->texts.size(), 1);
  EXPECT_EQ(readers[2]->texts[0], readers[1]->texts[0]) << "one text for all readers";
  EXPECT_EQ(readers[0]->texts.size(), 0);
}

// More may change at once than the memory holds.
TEST_F(TimelineFeedTest, ReadersBeginAgainIfTheChangesAreLost) {
  feed_.Take(kBegin, {Job("a/x", 1)});
  const auto reader = Join();
  std::vector<Observation> many;
  for (int i = 0; i < 40'000; ++i) {
    many.push_back(Job("a/x", i));
    (*many.back().values)[Field::kReason] = Format("{} {}", i, std::string(240, 'x'));
  }
  feed_.Take(kBegin + 1s, many);
  EXPECT_FALSE(reader->open());
  EXPECT_EQ(Join({.last_event_id = "op-0_1f/1"})->data()["frame"]["job"]["a/x"]["gpus"], 39'999);
}

}  // namespace
}  // namespace pliant::web
