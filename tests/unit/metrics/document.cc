#include "tests/unit/metrics/document.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace pliant {
namespace {

std::string Trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" `"));
  text.erase(text.find_last_not_of(" `") + 1);
  return text;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(Trimmed(part));
  return parts;
}

// The sections with tables of metrics; other sections may have other tables.
const std::set<std::string> kSections{"Operator", "Coordinator", "Learner"};

// | `name` | type | `label`, `label` | unit | meaning |
struct Row {
  std::string section;
  MetricFamily family;
  std::string unit;
};

std::vector<Row> ReadRows() {
  std::ifstream file(PLIANT_SOURCE_DIR "/docs/metrics.md");
  if (!file) throw std::runtime_error("docs/metrics.md cannot be read");
  std::vector<Row> rows;
  std::string section;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!kSections.contains(section) || !line.starts_with("| `")) continue;
    const std::vector<std::string> cells = Split(line, '|');
    if (cells.size() != 6) throw std::runtime_error("not five columns: " + line);
    MetricFamily family{.name = cells[1], .type = cells[2], .help = cells[5]};
    for (std::string label : Split(cells[3], ',')) family.labels.push_back(std::move(label));
    std::ranges::sort(family.labels);
    rows.push_back({section, std::move(family), cells[4]});
  }
  return rows;
}

std::string Join(std::string name, std::vector<std::string> labels) {
  std::ranges::sort(labels);
  name += '{';
  for (const std::string& label : labels) name += label + ',';
  if (name.back() == ',') name.pop_back();
  return name + '}';
}

// name{a="x",b="y"} value: our label values contain neither quotes nor commas.
std::pair<std::string, std::vector<std::string>> ParseSeries(const std::string& line) {
  const std::size_t brace = line.find('{');
  const std::size_t space = line.find(' ');
  if (brace == std::string::npos || space < brace) return {line.substr(0, space), {}};
  std::vector<std::string> labels;
  const std::size_t end = line.find('}', brace);
  for (const std::string& pair : Split(line.substr(brace + 1, end - brace - 1), ',')) {
    labels.push_back(pair.substr(0, pair.find('=')));
  }
  return {line.substr(0, brace), labels};
}

}  // namespace

std::vector<MetricFamily> DocumentedIn(const std::string& section) {
  std::vector<MetricFamily> families;
  for (Row& row : ReadRows()) {
    if (row.section == section) families.push_back(std::move(row.family));
  }
  std::ranges::sort(families, {}, &MetricFamily::name);
  return families;
}

std::string DocumentedUnit(const std::string& name) {
  for (const Row& row : ReadRows()) {
    if (row.family.name == name) return row.unit;
  }
  return "";
}

std::set<std::string> SeriesIn(const std::string& text) {
  std::set<std::string> series;
  std::string family;
  bool histogram = false;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# TYPE ")) {
      const std::vector<std::string> words = Split(line, ' ');
      family = words.at(2);
      histogram = words.at(3) == "histogram";
    }
    if (line.starts_with('#') || line.empty()) continue;
    auto [name, labels] = ParseSeries(line);
    if (histogram) std::erase(labels, "le");
    series.insert(Join(histogram ? family : name, labels));
  }
  return series;
}

std::set<std::string> SeriesOf(const std::vector<MetricFamily>& families) {
  std::set<std::string> series;
  for (const MetricFamily& family : families) series.insert(Join(family.name, family.labels));
  return series;
}

}  // namespace pliant
