#include "base/yaml_json.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/format.h"
#include "base/json.h"

namespace pliant {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxYamlNodes = 1'000'000;  // aliases can repeat a node without limit

class Converter {
 public:
  Result<json> Convert(const YAML::Node& node) { return From(node, 0); }

 private:
  Result<json> From(const YAML::Node& node, int level) {
    if (++nodes_ > kMaxYamlNodes) return Invalid("has too many values");
    if (level > kMaxJsonLevels) {
      return Invalid(Format("nested more than {} levels deep", kMaxJsonLevels));
    }
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return FromScalar(node);
      case YAML::NodeType::Sequence: {
        json array = json::array();
        for (const YAML::Node& element : node) {
          ASSIGN_OR_RETURN(json value, From(element, level + 1));
          array.push_back(std::move(value));
        }
        return array;
      }
      case YAML::NodeType::Map: {
        json object = json::object();
        for (const auto& entry : node) {
          ASSIGN_OR_RETURN(json value, From(entry.second, level + 1));
          object[entry.first.Scalar()] = std::move(value);
        }
        return object;
      }
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined:
        break;
    }
    return json();
  }

  // YAML 1.2's core schema: a plain scalar is a number or a boolean if it looks like one.
  static json FromScalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() == "!") return text;  // quoted
    if (text == "true") return true;
    if (text == "false") return false;
    if (text.find_first_not_of("0123456789.eE+-") == std::string::npos) {
      if (std::int64_t integer = 0; YAML::convert<std::int64_t>::decode(node, integer)) {
        return integer;
      }
      if (double number = 0; YAML::convert<double>::decode(node, number)) return number;
    }
    return text;
  }

  std::size_t nodes_ = 0;
};

}  // namespace

Result<json> ToJson(const YAML::Node& node) { return Converter().Convert(node); }

}  // namespace pliant
