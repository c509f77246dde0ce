#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace pliant::simulator {

inline constexpr std::size_t kMaxCsvBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxCsvRows = 1'000'000;
inline constexpr std::size_t kMaxNameBytes = 255;

// A table with a header, without quotes and without spaces around commas. Every error names the
// file, the line and the remedy: "a.csv:17: 'batch_size' is not a whole number: 12a; ...".
class CsvTable {
 public:
  // `columns`: all columns of the file. They may stand in any order. A table without rows is an
  // error. kNotFound if there is no file, kInvalid for its content.
  static Result<CsvTable> Read(const std::filesystem::path& path,
                               std::span<const std::string_view> columns);
  // `file`: its name in errors.
  static Result<CsvTable> Parse(std::string text, std::string file,
                                std::span<const std::string_view> columns);

  std::size_t rows() const { return lines_.size(); }
  const std::string& file() const { return file_; }

  // `column`: its index in `columns`. The text lives as long as the table stays where it is.
  std::string_view Text(std::size_t row, std::size_t column) const;
  // The text of a name.
  Result<std::string> Name(std::size_t row, std::size_t column) const;
  Result<double> Number(std::size_t row, std::size_t column, double min, double max) const;
  Result<std::int64_t> Whole(std::size_t row, std::size_t column, std::int64_t min,
                             std::int64_t max) const;

  // An error at the line of the row.
  std::unexpected<Error> Wrong(std::size_t row, std::string_view sentence) const;

 private:
  struct Cell {
    std::size_t begin = 0;
    std::size_t size = 0;
  };

  CsvTable(std::string text, std::string file, std::span<const std::string_view> columns)
      : text_(std::move(text)), file_(std::move(file)), columns_(columns.begin(), columns.end()) {}
  Status ReadHeader(std::string_view header);
  Status ReadRow(std::size_t begin, std::size_t size, std::size_t line);

  std::string text_;
  std::string file_;
  std::vector<std::string> columns_;
  std::vector<std::size_t> column_at_;  // by position in the file: index in `columns_`
  std::vector<Cell> cells_;             // row by row, in the order of `columns_`
  std::vector<std::size_t> lines_;      // by row, from 1
};

// Whether a job or a queue may have this name: 1 to 255 letters, digits and "-_.".
bool IsName(std::string_view text);

// A text from a file as errors show it: short, in printable ASCII.
std::string Shown(std::string_view text);

}  // namespace pliant::simulator
