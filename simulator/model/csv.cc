#include "simulator/model/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "simulator/model/data_file.h"

namespace pliant::simulator {
namespace {

constexpr std::size_t kMaxShownBytes = 40;

bool IsNameLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

std::vector<std::string_view> SplitAtCommas(std::string_view line) {
  std::vector<std::string_view> found;
  while (true) {
    const std::size_t comma = line.find(',');
    found.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return found;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && std::ranges::all_of(text, IsNameLetter);
}

std::string Shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kMaxShownBytes)) shown += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kMaxShownBytes) shown += "...";
  return shown.empty() ? "(empty)" : shown;
}

Result<CsvTable> CsvTable::Read(const std::filesystem::path& path,
                                std::span<const std::string_view> columns) {
  ASSIGN_OR_RETURN(std::string text, ReadDataFile(path, kMaxCsvBytes, "CSV"));
  return Parse(std::move(text), path.string(), columns);
}

Result<CsvTable> CsvTable::Parse(std::string text, std::string file,
                                 std::span<const std::string_view> columns) {
  CsvTable table(std::move(text), std::move(file), columns);
  const std::string_view all = table.text_;
  std::size_t begin = 0;
  for (std::size_t line = 1; begin < all.size(); ++line) {
    const std::size_t end = std::min(all.find('\n', begin), all.size());
    std::string_view content = all.substr(begin, end - begin);
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (line == 1) {
      RETURN_IF_ERROR(table.ReadHeader(content));
    } else if (table.rows() == kMaxCsvRows) {
      return Invalid(Format("{} has more than {} rows; split it", table.file_, kMaxCsvRows));
    } else {
      RETURN_IF_ERROR(table.ReadRow(begin, content.size(), line));
    }
    begin = end + 1;
  }
  if (table.rows() == 0) {
    return Invalid(
        Format("{}:1: there are no rows; add a header and at least one row", table.file_));
  }
  return table;
}

Status CsvTable::ReadHeader(std::string_view header) {
  const std::vector<std::string_view> names = SplitAtCommas(header);
  for (const std::string_view name : names) {
    const auto at = std::ranges::find(columns_, name);
    if (at == columns_.end()) {
      return Invalid(Format("{}:1: the column '{}' is unknown; remove it", file_, Shown(name)));
    }
    const auto index = static_cast<std::size_t>(at - columns_.begin());
    if (std::ranges::contains(column_at_, index)) {
      return Invalid(Format("{}:1: the column '{}' stands there twice; remove one", file_, name));
    }
    column_at_.push_back(index);
  }
  for (const std::string& column : columns_) {
    if (!std::ranges::contains(names, column)) {
      return Invalid(Format("{}:1: the column '{}' is missing; add it", file_, column));
    }
  }
  return {};
}

Status CsvTable::ReadRow(std::size_t begin, std::size_t size, std::size_t line) {
  const std::string_view row = std::string_view(text_).substr(begin, size);
  const auto cells = static_cast<std::size_t>(std::ranges::count(row, ',')) + 1;
  if (cells != columns_.size()) {
    return Invalid(Format("{}:{}: there are {} cells; write one for each of the {} columns", file_,
                          line, cells, columns_.size()));
  }
  const std::size_t first = cells_.size();
  cells_.resize(first + columns_.size());
  std::size_t at = begin;
  for (const std::size_t column : column_at_) {
    const std::size_t end = std::min(text_.find(',', at), begin + size);
    cells_[first + column] = {.begin = at, .size = end - at};
    at = end + 1;
  }
  lines_.push_back(line);
  return {};
}

std::string_view CsvTable::Text(std::size_t row, std::size_t column) const {
  const Cell& cell = cells_[row * columns_.size() + column];
  return std::string_view(text_).substr(cell.begin, cell.size);
}

Result<std::string> CsvTable::Name(std::size_t row, std::size_t column) const {
  const std::string_view text = Text(row, column);
  if (!IsName(text)) {
    return Wrong(row, Format("'{}' is not a name: {}; write 1 to {} letters, digits and -_.",
                             columns_[column], Shown(text), kMaxNameBytes));
  }
  return std::string(text);
}

Result<double> CsvTable::Number(std::size_t row, std::size_t column, double min, double max) const {
  const std::string_view text = Text(row, column);
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || at != end || std::isnan(value)) {
    return Wrong(row, Format("'{}' is not a number: {}; write one, for example 0.25",
                             columns_[column], Shown(text)));
  }
  if (error != std::errc() || value < min || value > max) {
    return Wrong(row, Format("'{}' is {}; write a number from {} to {}", columns_[column],
                             Shown(text), min, max));
  }
  return value;
}

Result<std::int64_t> CsvTable::Whole(std::size_t row, std::size_t column, std::int64_t min,
                                     std::int64_t max) const {
  const std::string_view text = Text(row, column);
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || at != end) {
    return Wrong(row, Format("'{}' is not a whole number: {}; write one from {} to {}",
                             columns_[column], Shown(text), min, max));
  }
  if (error != std::errc() || value < min || value > max) {
    return Wrong(row, Format("'{}' is {}; write a whole number from {} to {}", columns_[column],
                             Shown(text), min, max));
  }
  return value;
}

std::unexpected<Error> CsvTable::Wrong(std::size_t row, std::string_view sentence) const {
  return Invalid(Format("{}:{}: {}", file_, lines_[row], sentence));
}

}  // namespace pliant::simulator
