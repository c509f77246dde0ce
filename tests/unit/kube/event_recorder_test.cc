#include "operator/kube/event_recorder.h"

#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>

#include <gtest/gtest.h>

#include "operator/kube/wall_time.h"
#include "tests/kube/scripted_transport.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;
using nlohmann::json;

EventNote Note(const std::string& text) {
  return {.regarding = {kPods, {.key = {"team-a", "p"}, .uid = "u"}},
          .type = EventType::kWarning,
          .reason = "Failed",
          .action = "Start",
          .note = text};
}

class EventRecorderTest : public testing::Test {
 protected:
  ScriptedTransport transport_;
  KubeClient client_{transport_, Config{.server = "https://a"}, {.requests_per_second = 0}};
};

TEST_F(EventRecorderTest, WritesAnEventAndThenItsSeries) {
  const HttpResponse ok{.status = 200, .headers = {}, .body = "{}"};
  transport_.Answer(HttpMethod::kPost, "/apis/events.k8s.io/v1/namespaces/team-a/events?", ok);
  transport_.Answer(HttpMethod::kPatch, "/apis/events.k8s.io/v1/namespaces/team-a/events/p.", ok);
  EventRecorder recorder(client_, {.instance = "operator-1"});
  recorder.Record(Note("no such image"));
  recorder.Record(Note("no such image"));
  ASSERT_TRUE(recorder.Flush(5s));
  ASSERT_TRUE(transport_.done());
  const json event = json::parse(transport_.requests()[0].body);
  EXPECT_EQ(event["regarding"], (json{{"apiVersion", "v1"},
                                      {"kind", "Pod"},
                                      {"namespace", "team-a"},
                                      {"name", "p"},
                                      {"uid", "u"}}));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "Failed");
  EXPECT_EQ(event["action"], "Start");
  EXPECT_EQ(event["note"], "no such image");
  EXPECT_EQ(event["reportingInstance"], "operator-1");
  EXPECT_EQ(event["reportingController"], "pliant.dev/operator");
  EXPECT_EQ(json::parse(transport_.requests()[1].body)["series"]["count"], 2);
  EXPECT_EQ(recorder.dropped(), 0u);
}

TEST_F(EventRecorderTest, LongNotesAreCutBetweenCharacters) {
  transport_.AnswerRest(
      [](const HttpRequest&) { return HttpResponse{.status = 200, .headers = {}, .body = "{}"}; });
  EventRecorder recorder(client_, {});
  recorder.Record(Note(std::string(1023, 'x') + "\xC3\xA4"));
  ASSERT_TRUE(recorder.Flush(5s));
  EXPECT_EQ(json::parse(transport_.requests()[0].body)["note"], std::string(1023, 'x'));
}

TEST_F(EventRecorderTest, NeverBlocksAndCountsWhatItDrops) {
  // The server does not answer until the end of the test.
  std::stop_source release;
  transport_.AnswerRest([&](const HttpRequest&) -> Result<HttpResponse> {
    while (!release.stop_requested()) std::this_thread::sleep_for(1ms);
    return Fail(ErrorCode::kUnavailable, "reset");
  });
  EventRecorder recorder(client_, {.max_waiting = 10});
  for (int i = 0; i < 100; ++i) recorder.Record(Note(std::to_string(i)));
  EXPECT_GE(recorder.dropped(), 89u) << "ten events wait and one is being written";
  EXPECT_FALSE(recorder.Flush(1ms));
  release.request_stop();
  EXPECT_TRUE(recorder.Flush(5s));
  EXPECT_EQ(recorder.dropped(), 100u);
}

TEST(WallTime, IsTheMicroTimeOfTheApi) {
  EXPECT_EQ(MicroTime(std::chrono::system_clock::time_point(1767225600s + 42us + 700ns)),
            "2026-01-01T00:00:00.000042Z");
}

}  // namespace
}  // namespace pliant::kube
