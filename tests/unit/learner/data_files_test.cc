// CIFAR-10 and IDX: small files in the same formats, and all possible errors in them.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "trainer/learner/cifar10_file.h"
#include "trainer/learner/idx_file.h"
#include "trainer/learner/samples.h"

namespace pliant::learner {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes Record(std::uint8_t label, std::uint8_t pixel) {
  Bytes record(3073, pixel);
  record[0] = label;
  return record;
}

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

TEST(Cifar10, FilesAreReadOneAfterTheOther) {
  Samples samples;
  ASSERT_TRUE(ParseCifar10(Record(3, 10) + Record(9, 20), "a.bin", samples));
  Bytes third = Record(0, 30);
  third[1] = 31;
  ASSERT_TRUE(ParseCifar10(third, "b.bin", samples));
  EXPECT_EQ(samples.shape, (Shape{3, 32, 32}));
  EXPECT_EQ(samples.labels, (Bytes{3, 9, 0}));
  ASSERT_EQ(samples.pixels.size(), 3U * 3072);
  EXPECT_EQ(samples.pixels[3071], 10);
  EXPECT_EQ(samples.pixels[3072], 20);
  EXPECT_EQ(samples.pixels[6144], 31);
  EXPECT_EQ(samples.pixels[6145], 30);
}

TEST(Cifar10, ReportsErrorsWithTheirOffset) {
  struct Case {
    std::string name;
    Bytes bytes;
    std::string want;
  };
  Bytes cut = Record(1, 0) + Record(2, 0);
  cut.pop_back();
  const Case cases[] = {
      {"an empty file", {}, "a.bin: holds no image"},
      {"a file cut short", cut,
       "a.bin: offset 6145: the file ends within image 1: expected records of 3073 bytes (a label "
       "and 3x32x32 pixels), but it has 6145 bytes"},
      {"CIFAR-100, which has two labels", Bytes(3074, 1),
       "a.bin: offset 3074: the file ends within image 1: expected records of 3073 bytes (a label "
       "and 3x32x32 pixels), but it has 3074 bytes"},
      {"a label that is no class", Record(9, 0) + Record(10, 0),
       "a.bin: offset 3073: image 1 has the label 10: expected 0..9"},
  };
  for (const Case& c : cases) {
    Samples samples;
    const Status status = ParseCifar10(c.bytes, "a.bin", samples);
    ASSERT_FALSE(status) << c.name;
    EXPECT_EQ(status.error(), (Error{ErrorCode::kInvalid, c.want})) << c.name;
  }
}

Bytes BigEndian(std::initializer_list<std::uint32_t> words) {
  Bytes bytes;
  for (const std::uint32_t word : words) {
    for (const int shift : {24, 16, 8, 0})
      bytes.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  return bytes;
}

const Bytes kImages = BigEndian({0x803, 2, 2, 3}) + Bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
const Bytes kLabels = BigEndian({0x801, 2}) + Bytes{4, 0};

TEST(Idx, ImagesAndLabelsAreJoined) {
  const auto samples = ParseIdx({kImages, "i"}, {kLabels, "l"}, 10);
  ASSERT_TRUE(samples) << samples.error();
  EXPECT_EQ(*samples, (Samples{.shape = {1, 2, 3},
                               .pixels = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                               .labels = {4, 0}}));
}

TEST(Idx, ReportsErrorsWithTheirOffset) {
  struct Case {
    std::string name;
    Bytes images;
    Bytes labels;
    std::string want;
  };
  const Bytes pixels(12, 0);
  const Case cases[] = {
      {"an empty file",
       {},
       kLabels,
       "i: offset 0: the file ends within its header: expected 16 bytes"},
      {"a cut header", BigEndian({0x803, 2, 2}), kLabels,
       "i: offset 12: the file ends within its header: expected 16 bytes"},
      {"labels for images", kLabels + pixels, kLabels,
       "i: offset 0: the magic number is 0x00000801: expected 0x00000803, images"},
      {"images for labels", kImages, kImages,
       "l: offset 0: the magic number is 0x00000803: expected 0x00000801, labels"},
      {"values of another type", BigEndian({0xd03, 2, 2, 3}) + pixels, kLabels,
       "i: offset 0: the magic number is 0x00000d03: expected 0x00000803, images"},
      {"a file as it is downloaded", Bytes{0x1f, 0x8b, 8, 8}, kLabels,
       "i: offset 0: the file is compressed: unpack it with gunzip"},
      {"no images", BigEndian({0x803, 0, 2, 3}), kLabels,
       "i: offset 4: 0 images: expected at least 1"},
      {"images without rows", BigEndian({0x803, 2, 0, 3}), kLabels,
       "i: offset 8: 0 rows: expected 1 to 65536"},
      {"more columns than any image has", BigEndian({0x803, 2, 2, 0x20000}) + pixels, kLabels,
       "i: offset 12: 131072 columns: expected 1 to 65536"},
      {"a count that would need more memory than there is",
       BigEndian({0x803, 0xffffffff, 0x10000, 0x10000}) + pixels, kLabels,
       "i: offset 4: 4294967295 images do not fit the 12 bytes after the header of 16 bytes: the "
       "file is truncated, or not an IDX file"},
      {"a missing last pixel", Bytes(kImages.begin(), kImages.end() - 1), kLabels,
       "i: offset 4: 2 images do not fit the 11 bytes after the header of 16 bytes: the file is "
       "truncated, or not an IDX file"},
      {"one pixel too many", kImages + Bytes{0}, kLabels,
       "i: offset 4: 2 images do not fit the 13 bytes after the header of 16 bytes: the file is "
       "truncated, or not an IDX file"},
      {"labels of another set", kImages, BigEndian({0x801, 3}) + Bytes{4, 0, 1},
       "l: offset 4: 3 labels, but i has 2 images"},
      {"a label that is no class", kImages, BigEndian({0x801, 2}) + Bytes{4, 10},
       "l: offset 9: image 1 has the label 10: expected 0..9"},
  };
  for (const Case& c : cases) {
    const auto samples = ParseIdx({c.images, "i"}, {c.labels, "l"}, 10);
    ASSERT_FALSE(samples) << c.name;
    EXPECT_EQ(samples.error(), (Error{ErrorCode::kInvalid, c.want})) << c.name;
  }
}

class DataFolder : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("pliant-data-" + std::to_string(::getpid()));
};

TEST_F(DataFolder, SetsAreReadFromTheirFiles) {
  Write("1.bin", Record(1, 0));
  Write("2.bin", Record(2, 0));
  const auto cifar = ReadSamples({.kind = DataKind::kCifar10},
                                 {.images = {"2.bin", "1.bin"}, .labels = {}}, folder_);
  ASSERT_TRUE(cifar) << cifar.error();
  EXPECT_EQ(cifar->labels, (Bytes{2, 1}));
  Write("images", kImages);
  Write("labels", kLabels);
  const auto idx =
      ReadSamples({.kind = DataKind::kIdx}, {.images = {"images"}, .labels = "labels"}, folder_);
  ASSERT_TRUE(idx) << idx.error();
  EXPECT_EQ(idx->count(), 2U);
}

TEST_F(DataFolder, AFileThatCannotBeReadIsNamed) {
  const auto read = [&](const std::string& name) {
    const auto samples =
        ReadSamples({.kind = DataKind::kCifar10}, {.images = {name}, .labels = {}}, folder_);
    return samples ? "read" : samples.error().message;
  };
  const std::string folder = folder_.string();
  EXPECT_EQ(read("none.bin"), "read " + folder + "/none.bin: No such file or directory");
  EXPECT_EQ(read("."), "read " + folder + "/.: expected a file");
  EXPECT_EQ(read("/dev/zero"), "read /dev/zero: expected a file") << "it is endless";
  // A size is believed only if the file system can hold it; this file is sparse.
  Write("huge.bin", {});
  std::filesystem::resize_file(folder_ / "huge.bin", std::uintmax_t{65} << 30);
  EXPECT_EQ(read("huge.bin"),
            "read " + folder + "/huge.bin: it has 69793218560 bytes: expected at most 68719476736");
}

TEST(Samples, AModelTakesImagesAsTheyAreOrInARow) {
  EXPECT_TRUE(CheckInput({1, 28, 28}, {1, 28, 28}));
  EXPECT_TRUE(CheckInput({784}, {1, 28, 28}));
  EXPECT_EQ(CheckInput({28, 28, 1}, {1, 28, 28}).error().message,
            "input: the images are 1x28x28, but the model takes 28x28x1: expected [1, 28, 28] or "
            "[784]");
}

}  // namespace
}  // namespace pliant::learner
