#include "tests/kube/yaml_objects.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <yaml-cpp/yaml.h>

namespace pliant::kube {
namespace {

using nlohmann::json;

// YAML 1.2's core schema: a plain scalar is a number or a boolean if it looks like one.
json FromScalar(const YAML::Node& node) {
  if (node.Tag() == "!") return node.Scalar();  // quoted
  const std::string& text = node.Scalar();
  if (text == "true") return true;
  if (text == "false") return false;
  if (text.find_first_not_of("0123456789.eE+-") == std::string::npos) {
    if (std::int64_t integer = 0; YAML::convert<std::int64_t>::decode(node, integer))
      return integer;
    if (double number = 0; YAML::convert<double>::decode(node, number)) return number;
  }
  return text;
}

json FromYaml(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return FromScalar(node);
    case YAML::NodeType::Sequence: {
      json array = json::array();
      for (const YAML::Node& element : node) array.push_back(FromYaml(element));
      return array;
    }
    case YAML::NodeType::Map: {
      json object = json::object();
      for (const auto& entry : node) object[entry.first.Scalar()] = FromYaml(entry.second);
      return object;
    }
    case YAML::NodeType::Null:
    case YAML::NodeType::Undefined:
      break;
  }
  return nullptr;
}

}  // namespace

Result<std::vector<json>> ParseYamlObjects(const std::string& text) {
  std::vector<json> objects;
  try {
    for (const YAML::Node& document : YAML::LoadAll(text)) {
      if (!document.IsNull()) objects.push_back(FromYaml(document));
    }
  } catch (const YAML::Exception& error) {
    return Invalid(error.what());
  }
  return objects;
}

Result<std::vector<json>> LoadYamlObjects(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return Fail(ErrorCode::kNotFound, "cannot read " + file);
  auto objects = ParseYamlObjects(text.str());
  if (!objects) return std::unexpected(InContext(file, std::move(objects).error()));
  return objects;
}

Result<std::vector<json>> LoadDefinitions() {
  std::set<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(PLIANT_SOURCE_DIR "/crds")) {
    files.insert(file.path());
  }
  std::vector<json> definitions;
  for (const auto& file : files) {
    ASSIGN_OR_RETURN(std::vector<json> objects, LoadYamlObjects(file));
    std::ranges::move(objects, std::back_inserter(definitions));
  }
  return definitions;
}

}  // namespace pliant::kube
