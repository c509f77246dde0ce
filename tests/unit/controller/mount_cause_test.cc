#include "operator/controller/model/mount_cause.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::controller {
namespace {

using nlohmann::json;

json Event(const char* reason, const char* note, const char* last) {
  return {{"reason", reason}, {"note", note}, {"deprecatedLastTimestamp", last}};
}

TEST(MountCause, IsTheNewestThatSaysWhy) {
  const json missing =
      Event("FailedMount", "configmap \"model\" not found", "2026-01-01T00:00:05Z");
  const json refused = Event("FailedMount", "mount.nfs: access denied", "2026-01-01T00:00:09Z");
  const json summary =
      Event("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[model]",
            "2026-01-01T00:02:00Z");
  const json other = Event("Pulled", "Container image already present", "2026-01-01T00:03:00Z");
  const struct {
    const char* name;
    std::vector<json> events;
    const char* cause;
  } kCases[] = {
      {"none", {}, ""},
      {"of other things only", {other}, ""},
      {"the newer of two", {refused, missing}, "mount.nfs: access denied"},
      {"a later summary with fewer details", {missing, summary}, "configmap \"model\" not found"},
      {"nothing but a summary",
       {summary},
       "Unable to attach or mount volumes: unmounted volumes=[model]"},
      {"what is no event is passed over",
       {json("text"), json{{"reason", 7}}, missing},
       "configmap \"model\" not found"},
  };
  for (const auto& c : kCases) EXPECT_EQ(MountCauseIn(c.events), c.cause) << c.name;
}

TEST(MountCause, IsCutBetweenCharacters) {
  const std::string note = std::string(1023, 'x') + "\u00e9";
  EXPECT_EQ(MountCauseIn({Event("FailedMount", note.c_str(), "2026-01-01T00:00:05Z")}),
            std::string(1023, 'x'));
}

TEST(MountCause, OrdersEventsOfTheNewApiByTheirTime) {
  const json first = {
      {"reason", "FailedMount"}, {"note", "first"}, {"eventTime", "2026-01-01T00:00:05Z"}};
  const json second = {
      {"reason", "FailedMount"}, {"note", "second"}, {"eventTime", "2026-01-01T00:00:06Z"}};
  EXPECT_EQ(MountCauseIn({second, first}), "second");
}

}  // namespace
}  // namespace pliant::controller
