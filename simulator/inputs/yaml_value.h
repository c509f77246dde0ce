#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pliant::simulator {

enum class YamlKind { kNothing, kText, kList, kMapping };

// A value of a YAML file, with the lines that errors name. The first line is 1.
struct YamlValue {
  YamlKind kind = YamlKind::kNothing;
  int line = 1;
  std::string key;  // in its mapping; "": it is in no mapping
  int key_line = 1;
  std::string text;              // kText
  std::vector<YamlValue> items;  // of a list or a mapping, in the order of the file
};

// Parses a file of one document. A mapping has each key once. Aliases are refused, because a short
// file could repeat a value without limit; so are very deep and very long files. `file`: its name
// in errors.
Result<YamlValue> ParseYaml(const std::string& text, std::string_view file);

// An error at a line: "a.yaml:17: <sentence>".
std::unexpected<Error> WrongAt(std::string_view file, int line, std::string_view sentence);

// A value as errors show it: its text, "a list", "a mapping" or "(empty)".
std::string Shown(const YamlValue& value);

}  // namespace pliant::simulator
