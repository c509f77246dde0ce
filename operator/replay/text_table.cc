#include "operator/replay/text_table.h"

#include <algorithm>
#include <cstddef>

namespace pliant::replay {
namespace {

struct Column {
  std::size_t width = 0;
  bool is_number = true;
};

// "-", "12", "+0.5"
bool IsNumber(std::string_view cell) {
  if (cell == "-") return true;
  if (cell.starts_with('+') || cell.starts_with('-')) cell.remove_prefix(1);
  const std::size_t point = std::min(cell.find('.'), cell.size());
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return point > 0 && std::ranges::all_of(cell.substr(0, point), is_digit) &&
         std::ranges::all_of(cell.substr(std::min(point + 1, cell.size())), is_digit);
}

std::vector<Column> ColumnsOf(const std::vector<std::vector<std::string>>& rows) {
  std::vector<Column> columns(rows.front().size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t at = 0; at < columns.size(); ++at) {
      columns[at].width = std::max(columns[at].width, rows[row][at].size());
      if (row > 0 && !IsNumber(rows[row][at])) columns[at].is_number = false;
    }
  }
  return columns;
}

}  // namespace

std::string TextTable(const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  const std::vector<Column> columns = ColumnsOf(rows);
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t at = 0; at < columns.size(); ++at) {
      const std::string padding(columns[at].width - row[at].size(), ' ');
      if (at > 0) line += "  ";
      line += columns[at].is_number ? padding + row[at] : row[at] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return Printable(text);
}

std::string Printable(std::string_view text) {
  std::string printable(text);
  std::ranges::replace_if(
      printable,
      [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7f; }, '?');
  return printable;
}

}  // namespace pliant::replay
