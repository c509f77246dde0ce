#include "operator/kube/object_json.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace pliant::kube {
namespace {

using nlohmann::json;

TEST(ObjectJson, IsWhatTheLibraryMakesOfIt) {
  for (const char* text :
       {"null", "true", "-1", "1", "18446744073709551615", "-9223372036854775808", "1.5", "1e300",
        R"("a\"\u00e9\ud83d\ude00")", "[]", "{}", "[[], {}, [[1]], 2]",
        R"({"a": {"b": [1, {"c": null}], "d": ""}, "e": [], "": 1})",
        R"({"twice": 1, "twice": {"b": 2}})", R"({"metadata": 1, "a": {"managedFields": [1]}})",
        R"({"managedFields": [1], "metadata": ["managedFields", {"managedFields": 2}]})",
        R"({"metadata": {"labels": {"managedFields": "x"}, "name": "n"}})"}) {
    EXPECT_EQ(ParseWithoutHistory(text), json::parse(text)) << text;
  }
}

TEST(ObjectJson, LeavesTheHistoryOut) {
  const struct {
    const char* text;
    const char* want;
  } kHistories[] = {
      {R"({"metadata": {"managedFields": [{"f:a": {".": {}, "f:b": [1, "x", null]}}, 2]}})",
       R"({"metadata": {}})"},
      {R"({"metadata": {"a": 1, "managedFields": [], "b": {"c": [2]}}, "spec": {"d": 3}})",
       R"({"metadata": {"a": 1, "b": {"c": [2]}}, "spec": {"d": 3}})"},
      {R"({"metadata": {"managedFields": null, "uid": "u"}, "kind": "Pod"})",
       R"({"metadata": {"uid": "u"}, "kind": "Pod"})"},
      {R"({"type": "ADDED", "object": {"metadata": {"managedFields": [{"metadata": {}}]}, "x": 1}})",
       R"({"type": "ADDED", "object": {"metadata": {}, "x": 1}})"},
      {R"({"items": [{"metadata": {"managedFields": [1]}}, {"metadata": {"name": "b"}}]})",
       R"({"items": [{"metadata": {}}, {"metadata": {"name": "b"}}]})"},
  };
  for (const auto& [text, want] : kHistories) {
    EXPECT_EQ(ParseWithoutHistory(text), json::parse(want)) << text;
  }
}

TEST(ObjectJson, DiscardsInvalidJson) {
  for (const char* text : {"", "{", "{]", "[1,]", "{} {}", R"({"a" 1})", "nul", "\"\xff\"",
                           R"({"metadata": {"managedFields": [}})"}) {
    EXPECT_TRUE(ParseWithoutHistory(text).is_discarded()) << text;
  }
}

}  // namespace
}  // namespace pliant::kube
