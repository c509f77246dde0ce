#include "simulator/model/csv.h"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/simulator/data_folder.h"

namespace pliant::simulator {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr std::array<std::string_view, 2> kColumns = {"name", "size"};

Result<CsvTable> Parsed(std::string text) {
  return CsvTable::Parse(std::move(text), "a.csv", kColumns);
}

TEST(CsvTest, CellsAreFoundByColumnWhateverTheirOrder) {
  const auto table = Parsed("size,name\r\n12,x-1.b_2\r\n-3,\n");
  ASSERT_TRUE(table) << table.error();
  ASSERT_EQ(table->rows(), 2);
  EXPECT_EQ(table->Text(0, 0), "x-1.b_2");
  EXPECT_EQ(table->Name(0, 0).value(), "x-1.b_2");
  EXPECT_EQ(table->Whole(0, 1, 0, 12).value(), 12);
  EXPECT_EQ(table->Number(1, 1, -3, 0).value(), -3.0);
  EXPECT_EQ(table->Text(1, 0), "");
}

TEST(CsvTest, ALastLineNeedsNoLineEnd) {
  const auto table = Parsed("name,size\na,1\nb,2");
  ASSERT_TRUE(table) << table.error();
  EXPECT_EQ(table->Whole(1, 1, 0, 9).value(), 2);
}

TEST(CsvTest, AMovedTableKeepsItsCells) {
  auto table = Parsed("name,size\na,1");
  const CsvTable moved = *std::move(table);
  EXPECT_EQ(moved.Text(0, 0), "a");
}

struct BadTable {
  std::string text;
  std::string error;
};

TEST(CsvTest, ErrorsOfTablesNameTheLineAndTheRemedy) {
  const BadTable kCases[] = {
      {"", "a.csv:1: there are no rows; add a header and at least one row"},
      {"name,size\n", "a.csv:1: there are no rows; add a header and at least one row"},
      {"name\nx\n", "a.csv:1: the column 'size' is missing; add it"},
      {"name,size,colour\nx,1,2\n", "a.csv:1: the column 'colour' is unknown; remove it"},
      {"name, size\nx,1\n", "a.csv:1: the column ' size' is unknown; remove it"},
      {"name,size,name\nx,1,y\n", "a.csv:1: the column 'name' stands there twice; remove one"},
      {"\n1,2\n", "a.csv:1: the column '(empty)' is unknown; remove it"},
      {"name,size\nx,1\ny\n", "a.csv:3: there are 1 cells; write one for each of the 2 columns"},
      {"name,size\nx,1,2\n", "a.csv:2: there are 3 cells; write one for each of the 2 columns"},
      {"name,size\nx,1\n\n", "a.csv:3: there are 1 cells; write one for each of the 2 columns"},
  };
  for (const BadTable& each : kCases) {
    const auto table = Parsed(each.text);
    ASSERT_FALSE(table) << each.text;
    EXPECT_EQ(table.error(), (Error{ErrorCode::kInvalid, each.error}));
  }
}

struct BadCell {
  std::string cell;
  std::string whole;   // from 0 to 9
  std::string number;  // from 0 to 9.5
};

TEST(CsvTest, ErrorsOfNumbersNameTheColumn) {
  const std::string no_whole = "a.csv:2: 'size' is not a whole number: ";
  const std::string no_number = "a.csv:2: 'size' is not a number: ";
  const std::string write_one = "; write one from 0 to 9";
  const std::string example = "; write one, for example 0.25";
  const BadCell kCases[] = {
      {"12a", no_whole + "12a" + write_one, no_number + "12a" + example},
      {"", no_whole + "(empty)" + write_one, no_number + "(empty)" + example},
      {" 1", no_whole + " 1" + write_one, no_number + " 1" + example},
      {"+1", no_whole + "+1" + write_one, no_number + "+1" + example},
      {"nan", no_whole + "nan" + write_one, no_number + "nan" + example},
      {"inf", no_whole + "inf" + write_one, "a.csv:2: 'size' is inf; write a number from 0 to 9.5"},
      {"1e999", no_whole + "1e999" + write_one,
       "a.csv:2: 'size' is 1e999; write a number from 0 to 9.5"},
      {"-1", "a.csv:2: 'size' is -1; write a whole number from 0 to 9",
       "a.csv:2: 'size' is -1; write a number from 0 to 9.5"},
      {"99999999999999999999",
       "a.csv:2: 'size' is 99999999999999999999; write a whole number from 0 to 9",
       "a.csv:2: 'size' is 99999999999999999999; write a number from 0 to 9.5"},
      {"\x01\xff", no_whole + "??" + write_one, no_number + "??" + example},
  };
  for (const BadCell& each : kCases) {
    const auto table = Parsed("name,size\nx," + each.cell + "\n");
    ASSERT_TRUE(table) << table.error();
    const auto whole = table->Whole(0, 1, 0, 9);
    ASSERT_FALSE(whole) << each.cell;
    EXPECT_EQ(whole.error().message, each.whole);
    const auto number = table->Number(0, 1, 0, 9.5);
    ASSERT_FALSE(number) << each.cell;
    EXPECT_EQ(number.error().message, each.number);
  }
}

TEST(CsvTest, NamesAreShortAndPlain) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("../x"),
                                  std::string("\"q\""), std::string(256, 'x')}) {
    const auto table = Parsed("name,size\n" + name + ",1\n");
    ASSERT_TRUE(table) << table.error();
    const auto read = table->Name(0, 0);
    ASSERT_FALSE(read) << name;
    EXPECT_THAT(read.error().message, HasSubstr("a.csv:2: 'name' is not a name: "));
  }
}

TEST(CsvTest, ALongCellIsShownShort) {
  EXPECT_EQ(Shown(std::string(50, 'x')), std::string(40, 'x') + "...");
}

TEST(CsvFileTest, AnUnreadableFileIsAnError) {
  const DataFolder folder;
  const auto missing = CsvTable::Read(folder.path() / "no-such.csv", kColumns);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message,
              EndsWith("no-such.csv is missing; add it, or choose another path"));
  const auto directory = CsvTable::Read(folder.path(), kColumns);
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, EndsWith("is a directory; name a CSV file"));
  const auto device = CsvTable::Read("/dev/zero", kColumns);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message, "/dev/zero is not a regular file; name a CSV file");
}

TEST(CsvFileTest, AHugeFileIsNotRead) {
  const DataFolder folder;
  const std::filesystem::path path = folder.path() / "huge.csv";
  folder.Write("huge.csv", "name,size\n");
  std::filesystem::resize_file(path, kMaxCsvBytes + 1);  // sparse
  const auto table = CsvTable::Read(path, kColumns);
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().message,
              EndsWith("has 16777217 bytes; split it into files of at most 16777216 bytes"));
}

TEST(CsvFileTest, RowsAreBounded) {
  std::string text = "name,size\n";
  for (std::size_t row = 0; row <= kMaxCsvRows; ++row) text += ",\n";
  const auto table = Parsed(std::move(text));
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().message, "a.csv has more than 1000000 rows; split it");
}

}  // namespace
}  // namespace pliant::simulator
