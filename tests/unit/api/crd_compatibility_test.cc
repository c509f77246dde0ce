// Stored objects must stay valid when users upgrade the CRDs: compares the present schemas with the
// released ones.
#include <algorithm>
#include <fstream>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kube/yaml_objects.h"

namespace pliant {
namespace {

using nlohmann::json;

const std::string kDefinitions = PLIANT_SOURCE_DIR "/crds/pliant.dev_";
const std::string kPresent = kDefinitions + "elastictrainingjobs.yaml";
const std::string kReleased = PLIANT_SOURCE_DIR "/tests/unit/api/released";

json Load(const std::string& file) {
  const auto objects = kube::LoadYamlObjects(file);
  EXPECT_TRUE(objects) << objects.error();
  return objects ? objects->at(0) : json();
}

const json& At(const json& object, const char* name) {
  static const json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::set<std::string> Texts(const json& list) {
  std::set<std::string> texts;
  for (const json& item : list)
    texts.insert(item.is_string() ? item.get<std::string>() : item.dump());
  return texts;
}

// Checks that every value that `before` accepts is accepted and kept by `after`. Puts violations
// into `wrong`, each with the path of its field.
class Comparison {
 public:
  std::vector<std::string> wrong;

  void Compare(const json& before, const json& after, const std::string& path) {
    if (At(before, "type") != At(after, "type")) wrong.push_back(path + ": another type");
    CompareFields(before, after, path);
    CompareBounds(before, after, path);
    CompareValues(before, after, path);
    CompareRules(before, after, path);
    if (after.contains("items")) Compare(At(before, "items"), after["items"], path + "[]");
  }

 private:
  static constexpr const char* kUnknown = "x-kubernetes-preserve-unknown-fields";

  void CompareFields(const json& before, const json& after, const std::string& path) {
    if (before.value(kUnknown, false) && !after.value(kUnknown, false)) {
      wrong.push_back(path + ": unknown fields are dropped");
    }
    if (before.value(kUnknown, false)) {
      for (const auto& [name, _] : At(after, "properties").items()) {
        if (!At(before, "properties").contains(name)) {
          wrong.push_back(path + "." + name + ": anything was let in before");
        }
      }
    }
    for (const auto& [name, field] : At(before, "properties").items()) {
      const json& now = At(At(after, "properties"), name.c_str());
      if (now.is_null()) {
        wrong.push_back(path + "." + name + ": gone");
      } else {
        Compare(field, now, path + "." + name);
      }
    }
    const std::set<std::string> required = Texts(At(before, "required"));
    for (const std::string& name : Texts(At(after, "required"))) {
      const bool filled_in = At(At(after, "properties"), name.c_str()).contains("default");
      if (!required.contains(name) && !filled_in) {
        wrong.push_back(path + "." + name + ": required now");
      }
    }
  }

  void CompareBounds(const json& before, const json& after, const std::string& path) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    for (const char* bound : {"minimum", "minLength", "minItems"}) {
      if (after.value(bound, -kNone) > before.value(bound, -kNone)) Tighter(path, bound);
    }
    for (const char* bound : {"maximum", "maxLength", "maxItems"}) {
      if (after.value(bound, kNone) < before.value(bound, kNone)) Tighter(path, bound);
    }
  }

  void CompareValues(const json& before, const json& after, const std::string& path) {
    if (after.contains("pattern") && At(after, "pattern") != At(before, "pattern")) {
      Tighter(path, "pattern");
    }
    if (before.contains("default") && At(after, "default") != before["default"]) {
      wrong.push_back(path + ": another default");
    }
    if (!after.contains("enum")) return;
    const std::set<std::string> allowed = Texts(after["enum"]);
    if (!before.contains("enum")) Tighter(path, "enum");
    for (const std::string& value : Texts(At(before, "enum"))) {
      if (!allowed.contains(value)) wrong.push_back(path + ": " + value + " is refused now");
    }
  }

  void CompareRules(const json& before, const json& after, const std::string& path) {
    std::set<std::string> known;
    for (const json& rule : At(before, "x-kubernetes-validations")) known.insert(rule.at("rule"));
    for (const json& rule : At(after, "x-kubernetes-validations")) {
      const std::string text = rule.at("rule");
      const bool judges_changes = text.contains("oldSelf") && !rule.contains("optionalOldSelf");
      if (!known.contains(text) && !judges_changes) Tighter(path, text);
    }
  }

  void Tighter(const std::string& path, const std::string& what) {
    wrong.push_back(path + ": " + what + " lets in less");
  }
};

std::vector<std::string> WhatBreaks(const json& before, const json& after) {
  Comparison comparison;
  for (const json& version : before.at("spec").at("versions")) {
    const json* now = nullptr;
    for (const json& candidate : after.at("spec").at("versions")) {
      if (candidate.at("name") == version.at("name")) now = &candidate;
    }
    const std::string name = version.at("name");
    if (now == nullptr || !now->at("served").get<bool>()) {
      comparison.wrong.push_back(name + ": no longer served");
      continue;
    }
    comparison.Compare(version.at("schema").at("openAPIV3Schema"),
                       now->at("schema").at("openAPIV3Schema"), "");
    for (const auto& [subresource, _] : At(version, "subresources").items()) {
      if (!At(*now, "subresources").contains(subresource)) {
        comparison.wrong.push_back(name + ": no " + subresource);
      }
    }
  }
  return comparison.wrong;
}

// The versions that have a heading: "## 0.1.0", "## [0.1.0] - 2027-01-31".
std::vector<std::string> VersionsIn(std::istream& changelog) {
  static const std::regex kHeading(R"(## \[?(\d+\.\d+\.\d+)\b.*)");
  std::vector<std::string> versions;
  std::smatch match;
  for (std::string line; std::getline(changelog, line);) {
    if (std::regex_match(line, match, kHeading)) versions.push_back(match[1]);
  }
  return versions;
}

// A release adds its schemas to the folder: "elastictrainingjobs-0.1.0.yaml" and so on.
TEST(CrdCompatibility, StoredObjectsOfEachReleaseStayValid) {
  std::istringstream text("## Unreleased\n## 0.2.0\n### Added 1.0.0\n## [0.1.0] - 2027-01-31\n");
  EXPECT_EQ(VersionsIn(text), (std::vector<std::string>{"0.2.0", "0.1.0"}));
  std::ifstream changelog(PLIANT_SOURCE_DIR "/CHANGELOG.md");
  ASSERT_TRUE(changelog.good());
  for (const std::string& version : VersionsIn(changelog)) {
    for (const std::string kind : {"elastictrainingjobs", "gpupools", "trainingqueues"}) {
      const json before = Load(kReleased + "/" + kind + "-" + version + ".yaml");
      if (before.is_null()) continue;
      for (const std::string& wrong : WhatBreaks(before, Load(kDefinitions + kind + ".yaml")))
        ADD_FAILURE() << kind << " since " << version << ": " << wrong;
    }
  }
}

struct BreakCase {
  const char* name;
  const char* path;   // in the schema of the version
  const char* patch;  // merged into the existing schema
  const char* wrong;
};

TEST(CrdCompatibility, FindsWhatWouldBreak) {
  const BreakCase kCases[] = {
      {"a field went", "/properties/spec/properties", R"({"queue": null})", ".spec.queue: gone"},
      {"another type", "/properties/spec/properties/queue", R"({"type": "integer"})",
       ".spec.queue: another type"},
      {"a new field is required", "/properties/spec",
       R"({"properties": {"cost": {"type": "integer"}},
           "required": ["elastic", "training", "checkpoint", "template", "cost"]})",
       ".spec.cost: required now"},
      {"a bound", "/properties/spec/properties/priority", R"({"maximum": 100})",
       ".spec.priority: maximum lets in less"},
      {"a pattern", "/properties/spec/properties/queue", R"({"pattern": "^a"})",
       ".spec.queue: pattern lets in less"},
      {"a default", "/properties/spec/properties/suspend", R"({"default": true})",
       ".spec.suspend: another default"},
      {"a default that went", "/properties/spec/properties/suspend", R"({"default": null})",
       ".spec.suspend: another default"},
      {"a value", "/properties/status/properties/phase",
       R"({"enum": ["Queued", "Starting", "Running", "Resizing", "Recovering", "Suspending",
                    "Suspended", "Terminating", "Succeeded"]})",
       ".status.phase: Failed is refused now"},
      {"a rule", "/properties/spec/properties/training",
       R"({"x-kubernetes-validations": [{"rule": "false"}]})",
       ".spec.training: false lets in less"},
      {"a field of a template", "/properties/spec/properties/template/properties/spec",
       R"({"properties": {"volumes": {"type": "array"}}})",
       ".spec.template.spec.volumes: anything was let in before"},
      {"a template's fields", "/properties/spec/properties/template/properties/spec",
       R"({"x-kubernetes-preserve-unknown-fields": false})",
       ".spec.template.spec: unknown fields are dropped"},
  };
  const json present = Load(kPresent);
  EXPECT_EQ(WhatBreaks(present, present), std::vector<std::string>{});
  for (const BreakCase& c : kCases) {
    json changed = present;
    json& schema = changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    const json::json_pointer path(c.path);
    ASSERT_TRUE(schema.contains(path)) << c.name;
    schema[path].merge_patch(json::parse(c.patch));
    EXPECT_EQ(WhatBreaks(present, changed), std::vector<std::string>{c.wrong}) << c.name;
  }
}

}  // namespace
}  // namespace pliant
