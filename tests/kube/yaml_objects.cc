#include "tests/kube/yaml_objects.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/yaml_json.h"

namespace pliant::kube {

using nlohmann::json;

Result<std::vector<json>> ParseYamlObjects(const std::string& text) {
  std::vector<json> objects;
  try {
    for (const YAML::Node& document : YAML::LoadAll(text)) {
      if (document.IsNull()) continue;
      ASSIGN_OR_RETURN(json object, ToJson(document));
      objects.push_back(std::move(object));
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
