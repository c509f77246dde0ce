// Stored objects must stay valid when users upgrade the CRDs: compares the present schemas with the
// released ones.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
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
  return objects->at(0);
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
        if (!At(before, "properties").contains(name) && !IsNoPod(path + "." + name)) {
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

  // The new checks of a template refuse only what the API server refuses in a pod anyway, so no
  // admitted job is affected. (Except affinity with more terms than the operator evaluates per
  // node.)
  static bool IsNoPod(const std::string& path) {
    const std::string pod = ".spec.template.spec";
    for (const char* field : {".nodeSelector", ".tolerations", ".affinity", ".resources",
                              ".overhead", ".initContainers", ".containers[].resources"}) {
      if (path == pod + field) return true;
    }
    return false;
  }

  // The operator's flag or the job's queue now sets the default. Stored jobs keep the default that
  // an earlier CRD filled in.
  static bool IsKept(const std::string& path) {
    return path == ".spec.startTimeoutSeconds" || path == ".spec.priority" ||
           path == ".spec.resize.cooldownSeconds";
  }

  // Version 0.1.0 accepted only queue 'default', which fits the pattern of today.
  static bool HadOneValue(const json& before) {
    return std::ranges::contains(At(before, "x-kubernetes-validations"), "self == 'default'",
                                 [](const json& rule) { return rule.value("rule", ""); });
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
    if (after.contains("pattern") && At(after, "pattern") != At(before, "pattern") &&
        !HadOneValue(before)) {
      Tighter(path, "pattern");
    }
    const bool kept = IsKept(path) && !after.contains("default");
    if (before.contains("default") && At(after, "default") != before["default"] && !kept) {
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

TEST(CrdCompatibility, StoredJobsStayValid) {
  int releases = 0;
  for (const auto& file : std::filesystem::directory_iterator(kReleased)) {
    ++releases;
    // "elastictrainingjobs-0.1.0.yaml"
    const std::string name = file.path().filename();
    const std::string present = kDefinitions + name.substr(0, name.find('-')) + ".yaml";
    for (const std::string& wrong : WhatBreaks(Load(file.path()), Load(present))) {
      ADD_FAILURE() << "since " << file.path().filename() << ": " << wrong;
    }
  }
  EXPECT_GE(releases, 1);
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

TEST(CrdCompatibility, ADefaultThatTheOperatorSetsNowIsNoOtherOne) {
  const json present = Load(kPresent);
  for (const std::string field : {"startTimeoutSeconds", "priority"}) {
    const auto with_default = [&](int value) {
      json changed = present;
      changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
             ["properties"][field]["default"] = value;
      return changed;
    };
    EXPECT_EQ(WhatBreaks(with_default(120), present), std::vector<std::string>{});
    EXPECT_EQ(WhatBreaks(with_default(120), with_default(60)),
              std::vector<std::string>{".spec." + field + ": another default"});
  }
}

}  // namespace
}  // namespace pliant
