#include "operator/controller/objects/coordinator_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "operator/controller/model/names.h"

namespace pliant::controller {
namespace {

using nlohmann::json;
using Kind = json::value_t;

constexpr std::string_view kOurLabels = "pliant.dev/";
constexpr std::string_view kOurVariables = "PLIANT_";

struct Field {
  std::string_view name;
  Kind kind;
};

// The fields that may be set; the operator sets all others. The API server checks their content.
constexpr Field kTemplateFields[] = {{"metadata", Kind::object}, {"spec", Kind::object}};
constexpr Field kMetadataFields[] = {{"annotations", Kind::object}, {"labels", Kind::object}};
constexpr Field kPodFields[] = {
    {"affinity", Kind::object},          {"containers", Kind::array},
    {"imagePullSecrets", Kind::array},   {"nodeSelector", Kind::object},
    {"priorityClassName", Kind::string}, {"runtimeClassName", Kind::string},
    {"schedulerName", Kind::string},     {"securityContext", Kind::object},
    {"tolerations", Kind::array},        {"topologySpreadConstraints", Kind::array}};
constexpr Field kContainerFields[] = {{"env", Kind::array},
                                      {"imagePullPolicy", Kind::string},
                                      {"name", Kind::string},
                                      {"resources", Kind::object},
                                      {"securityContext", Kind::object}};

std::string_view NameOf(Kind kind) {
  return kind == Kind::object ? "an object" : kind == Kind::array ? "a list" : "a string";
}

std::string Names(std::span<const Field> fields) {
  std::string names;
  for (const Field& field : fields) {
    if (!names.empty()) names += ", ";
    names += field.name;
  }
  return names;
}

// `at`: the path of `object`, with a dot at its end; empty for the template itself.
Status CheckFields(const json& object, const std::string& at, std::span<const Field> fields) {
  for (const auto& [name, value] : object.items()) {
    const auto field = std::ranges::find(fields, name, &Field::name);
    if (field == fields.end()) {
      return Invalid(Format("{}{} cannot be set, only {}", at, name, Names(fields)));
    }
    if (value.type() != field->kind) {
      return Invalid(Format("{}{} is not {}", at, name, NameOf(field->kind)));
    }
  }
  return {};
}

// The field's value; an empty object if it is absent.
json At(const json& object, const char* name) { return object.value(name, json::object()); }

Status CheckTexts(const json& object, const std::string& path) {
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) return Invalid(Format("{}[{}] is not a string", path, name));
  }
  return {};
}

Status CheckMetadata(const json& metadata) {
  RETURN_IF_ERROR(CheckFields(metadata, "metadata.", kMetadataFields));
  RETURN_IF_ERROR(CheckTexts(At(metadata, "annotations"), "metadata.annotations"));
  const json labels = At(metadata, "labels");
  RETURN_IF_ERROR(CheckTexts(labels, "metadata.labels"));
  for (const auto& [name, value] : labels.items()) {
    if (name.starts_with(kOurLabels) || name == kLabelManagedBy) {
      return Invalid(Format("metadata.labels[{}] is reserved for the operator", name));
    }
  }
  return {};
}

// Checks that the items are objects, and that `key`, which identifies them, is a string.
Status CheckItems(const json& list, const std::string& path, const char* key, bool needed) {
  for (const json& item : list) {
    const bool right =
        item.is_object() && (item.contains(key) ? item.at(key).is_string() : !needed);
    if (!right) return Invalid(Format("{} has an item whose {} is not a string", path, key));
  }
  return {};
}

Status CheckContainers(const json& containers) {
  if (containers.empty()) return {};
  RETURN_IF_ERROR(CheckItems(containers, "spec.containers", "name", /*needed=*/true));
  const json& container = containers.at(0);
  if (containers.size() > 1 || container.at("name") != kCoordinatorContainer) {
    return Invalid(
        Format("spec.containers can have only one container, named {}", kCoordinatorContainer));
  }
  RETURN_IF_ERROR(CheckFields(container, "spec.containers[0].", kContainerFields));
  const json environment = At(container, "env");
  RETURN_IF_ERROR(CheckItems(environment, "spec.containers[0].env", "name", /*needed=*/true));
  for (const json& variable : environment) {
    const std::string name = variable.at("name");
    if (name.starts_with(kOurVariables)) {
      return Invalid(Format("spec.containers[0].env[{}] is reserved for the operator", name));
    }
  }
  return {};
}

Status CheckPod(const json& spec) {
  RETURN_IF_ERROR(CheckFields(spec, "spec.", kPodFields));
  RETURN_IF_ERROR(CheckTexts(At(spec, "nodeSelector"), "spec.nodeSelector"));
  RETURN_IF_ERROR(
      CheckItems(At(spec, "imagePullSecrets"), "spec.imagePullSecrets", "name", /*needed=*/true));
  RETURN_IF_ERROR(CheckItems(At(spec, "tolerations"), "spec.tolerations", "key", /*needed=*/false));
  return CheckContainers(At(spec, "containers"));
}

// Takes a list out of an object.
json Take(json& object, const char* name) {
  json list = object.value(name, json::array());
  object.erase(name);
  return list;
}

// Appends the items of `more` whose `key` the list does not have.
void AddMissing(json more, const char* key, json& object, const char* name) {
  for (json& item : more) {
    json& list = object[name];
    const bool has = std::ranges::any_of(
        list, [&](const json& other) { return other.value(key, "") == item.value(key, ""); });
    if (!has) list.push_back(std::move(item));
  }
}

}  // namespace

Status CheckCoordinatorTemplate(const std::string& text) {
  const json read = json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!read.is_object()) return Invalid("it is not a JSON object");
  RETURN_IF_ERROR(CheckFields(read, "", kTemplateFields));
  RETURN_IF_ERROR(CheckMetadata(At(read, "metadata")));
  return CheckPod(At(read, "spec"));
}

void AddCoordinatorTemplate(const std::string& text, json& pod) {
  if (text.empty()) return;
  const json theirs = json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  json spec = At(theirs, "spec");
  json& ours = pod["spec"];
  json& container = ours["containers"][0];
  for (json& changes : Take(spec, "containers")) {
    for (json& variable : Take(changes, "env")) container["env"].push_back(std::move(variable));
    container.merge_patch(changes);
  }
  // The administrator's tolerations come first: they may set how soon a coordinator leaves a lost
  // node.
  json tolerations = Take(spec, "tolerations");
  std::swap(tolerations, ours["tolerations"]);
  AddMissing(std::move(tolerations), "key", ours, "tolerations");
  AddMissing(Take(spec, "imagePullSecrets"), "name", ours, "imagePullSecrets");
  ours.merge_patch(spec);
  pod["metadata"].merge_patch(At(theirs, "metadata"));
}

}  // namespace pliant::controller
