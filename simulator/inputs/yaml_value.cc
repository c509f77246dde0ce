#include "simulator/inputs/yaml_value.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <sstream>
#include <utility>

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/emitterstyle.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "base/format.h"
#include "operator/replay/text_table.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::size_t kMaxLevels = 8;
constexpr std::size_t kMaxValues = 2'000'000;
// yaml-cpp holds all tokens of a list in brackets until it ends.
constexpr std::string_view kPunctuation = "[]{},";
constexpr std::size_t kMaxPunctuation = 3'000'000;

// Thrown through yaml-cpp, so it is one of its exceptions. The message has a remedy.
struct Refused : YAML::ParserException {
  using ParserException::ParserException;
};

[[noreturn]] void Refuse(const YAML::Mark& mark, const std::string& sentence) {
  throw Refused(mark, sentence);
}

class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (has_document_) Refuse(mark, "a second document begins; write one document only");
    has_document_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    CheckIsValue(mark);
    Add(Value(YamlKind::kNothing, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "aliases are not supported; write the value itself");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                const std::string& text) override {
    if (ExpectsKey()) return SetKey(mark, text);
    YamlValue value = Value(YamlKind::kText, mark);
    value.text = text;
    Add(std::move(value));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    Open(YamlKind::kList, mark);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    Open(YamlKind::kMapping, mark);
  }
  void OnMapEnd() override { Close(); }

  YamlValue Take() { return std::move(root_); }

 private:
  // A list or a mapping that has not ended.
  struct Level {
    YamlValue value;
    bool has_key = false;
    std::string key;
    int key_line = 1;
    std::set<std::string> keys;  // all of a mapping's
  };

  YamlValue Value(YamlKind kind, const YAML::Mark& mark) {
    if (++values_ > kMaxValues) {
      Refuse(mark, Format("there are more than {} values; split the file", kMaxValues));
    }
    return {.kind = kind, .line = mark.line + 1};
  }

  bool ExpectsKey() const {
    return !levels_.empty() && levels_.back().value.kind == YamlKind::kMapping &&
           !levels_.back().has_key;
  }

  void CheckIsValue(const YAML::Mark& mark) const {
    if (ExpectsKey()) Refuse(mark, "a key is not a text; write a name before the colon");
  }

  void SetKey(const YAML::Mark& mark, const std::string& text) {
    Level& level = levels_.back();
    if (!level.keys.insert(text).second) {
      Refuse(mark, Format("'{}' stands there twice; remove one", Shown(std::string_view(text))));
    }
    level.has_key = true;
    level.key = text;
    level.key_line = mark.line + 1;
  }

  void Open(YamlKind kind, const YAML::Mark& mark) {
    CheckIsValue(mark);
    if (levels_.size() == kMaxLevels) {
      Refuse(mark, Format("values are nested more than {} levels deep; no scenario needs that",
                          kMaxLevels));
    }
    levels_.push_back({.value = Value(kind, mark)});
  }

  void Close() {
    YamlValue value = std::move(levels_.back().value);
    levels_.pop_back();
    Add(std::move(value));
  }

  void Add(YamlValue value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.has_key) {
      value.key = std::move(level.key);
      value.key_line = level.key_line;
      level.has_key = false;
    }
    level.value.items.push_back(std::move(value));
  }

  YamlValue root_;
  std::vector<Level> levels_;
  std::size_t values_ = 0;
  bool has_document_ = false;
};

Status CheckPunctuation(std::string_view text, std::string_view file) {
  std::size_t count = 0;
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    if (kPunctuation.contains(c) && ++count > kMaxPunctuation) {
      return WrongAt(file, line,
                     Format("there are more than {} brackets, braces and commas; split the file",
                            kMaxPunctuation));
    }
  }
  return {};
}

}  // namespace

Result<YamlValue> ParseYaml(const std::string& text, std::string_view file) {
  RETURN_IF_ERROR(CheckPunctuation(text, file));
  TreeBuilder builder;
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& error) {
    return WrongAt(file, error.mark.line + 1, error.msg);
  } catch (const YAML::Exception& error) {
    return WrongAt(file, std::max(error.mark.line + 1, 1),
                   Format("this is not YAML: {}; correct it", replay::Printable(error.msg)));
  }
  return builder.Take();
}

std::unexpected<Error> WrongAt(std::string_view file, int line, std::string_view sentence) {
  return Invalid(Format("{}:{}: {}", file, line, sentence));
}

std::string Shown(const YamlValue& value) {
  if (value.kind == YamlKind::kList) return "a list";
  if (value.kind == YamlKind::kMapping) return "a mapping";
  return Shown(std::string_view(value.text));
}

}  // namespace pliant::simulator
