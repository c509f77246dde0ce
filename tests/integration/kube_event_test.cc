// Events, as `kubectl describe` shows them.
#include <gtest/gtest.h>

#include "operator/kube/event_recorder.h"
#include "tests/integration/api_server.h"
#include "tests/kube/kinds.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;

constexpr ResourceType kCoreEvents{"", "v1", "events", "Event"};

class KubeEventTest : public ApiServerTest {};

TEST_F(KubeEventTest, ANoteIsSeenWithItsObjectAndItsRepetitionsAreCounted) {
  const auto made = client().Create(kConfigMaps, ConfigMap("a"));
  ASSERT_TRUE(made) << made.error();
  EventRecorder recorder(client(), {.instance = "operator-1"});
  const EventNote note{.regarding = {kConfigMaps, MetaOf(*made)},
                       .type = EventType::kWarning,
                       .reason = "ImageMissing",
                       .action = "Start",
                       .note = "no such image: x:1"};
  recorder.Record(note);
  recorder.Record(note);
  ASSERT_TRUE(recorder.Flush(10s));
  EXPECT_EQ(recorder.dropped(), 0u);

  const auto events = client().List(kCoreEvents, ns(),
                                    {.field_selector = "involvedObject.uid=" + MetaOf(*made).uid});
  ASSERT_TRUE(events) << events.error();
  ASSERT_EQ(events->items.size(), 1u);
  const json& event = events->items[0];
  EXPECT_EQ(event["involvedObject"]["kind"], "ConfigMap");
  EXPECT_EQ(event["involvedObject"]["name"], "a");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "ImageMissing");
  EXPECT_EQ(event["message"], "no such image: x:1");
  EXPECT_EQ(event["reportingComponent"], "pliant.dev/operator");
  EXPECT_EQ(event["series"]["count"], 2);
}

TEST_F(KubeEventTest, ClusterScopedObjectsHaveEventsToo) {
  EventRecorder recorder(client(), {.instance = "operator-1"});
  const auto space = client().Get(kNamespaces, {"", ns()});
  ASSERT_TRUE(space);
  recorder.Record({.regarding = {kNamespaces, MetaOf(*space)},
                   .reason = "Checked",
                   .action = "Check",
                   .note = "all is well"});
  ASSERT_TRUE(recorder.Flush(10s));
  EXPECT_EQ(recorder.dropped(), 0u);
  const auto events = client().List(kCoreEvents, "default",
                                    {.field_selector = "involvedObject.uid=" + MetaOf(*space).uid});
  ASSERT_TRUE(events) << events.error();
  EXPECT_EQ(events->items.size(), 1u);
}

}  // namespace
}  // namespace pliant::kube
