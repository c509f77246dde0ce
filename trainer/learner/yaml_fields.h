#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

// Reads and checks values of YAML, for the files that read a model.
namespace pliant::learner {

// Thrown at a mistake in the text, caught in ParseModel.
struct Wrong {
  YAML::Mark mark;
  std::string message;
};

// A node's text in messages: "'x'", "a list", "nothing".
std::string Quoted(const YAML::Node& node);
// "unknown layer 'x': did you mean 'y'?", or a list of the known words.
std::string Unknown(std::string_view what, std::string_view typed,
                    std::span<const std::string_view> known);

struct WholeRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};
inline constexpr WholeRange kSizes = {1, 65536};  // channels, features, sides of an image
inline constexpr WholeRange kKernels = {1, 255};
inline constexpr WholeRange kCounts = {1, 1'000'000'000};
inline constexpr WholeRange kSeeds = {0, std::numeric_limits<std::int64_t>::max()};

struct RealRange {
  double least = 0;
  bool above = false;  // `least` itself is excluded
  double below = 0;
};

std::int64_t ReadWhole(const YAML::Node& node, std::string_view name, WholeRange range);
double ReadReal(const YAML::Node& node, std::string_view name, RealRange range);
bool ReadBool(const YAML::Node& node, std::string_view name);
std::string ReadText(const YAML::Node& node, std::string_view name);
// Read one value, or a list of at least one.
std::vector<double> ReadReals(const YAML::Node& node, std::string_view name, RealRange range);
std::vector<std::string> ReadTexts(const YAML::Node& node, std::string_view name);
// The word's index in `words`.
std::size_t ReadWord(const YAML::Node& node, std::string_view name, std::string_view what,
                     std::span<const std::string_view> words);

// One mapping whose keys are all known. `path` names it in messages: "train".
class Mapping {
 public:
  Mapping(const YAML::Node& node, std::string path, std::span<const std::string_view> known);

  bool Has(std::string_view key) const { return static_cast<bool>(Find(key)); }
  YAML::Node Find(std::string_view key) const { return node_[std::string(key)]; }
  YAML::Node Required(std::string_view key) const;
  YAML::Mark mark() const { return node_.Mark(); }
  std::string In(std::string_view message) const;

  std::int64_t Whole(std::string_view key, WholeRange range) const {
    return ReadWhole(Required(key), In(key), range);
  }
  std::optional<std::int64_t> OptionalWhole(std::string_view key, WholeRange range) const {
    const YAML::Node node = Find(key);
    if (!node) return std::nullopt;
    return ReadWhole(node, In(key), range);
  }
  double Real(std::string_view key, RealRange range) const {
    return ReadReal(Required(key), In(key), range);
  }
  std::optional<double> OptionalReal(std::string_view key, RealRange range) const {
    const YAML::Node node = Find(key);
    if (!node) return std::nullopt;
    return ReadReal(node, In(key), range);
  }
  bool OptionalBool(std::string_view key) const {  // false if it is missing
    const YAML::Node node = Find(key);
    return node && ReadBool(node, In(key));
  }
  std::string Text(std::string_view key) const { return ReadText(Required(key), In(key)); }

 private:
  YAML::Node node_;
  std::string path_;
};

}  // namespace pliant::learner
