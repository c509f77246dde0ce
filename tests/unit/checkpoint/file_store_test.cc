#include "trainer/checkpoint/file_store.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/memory_store.h"
#include "trainer/checkpoint/volume_error.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;

class FileStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "file-store-test-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  static Status Put(CheckpointStore& store, std::string_view name, std::string_view content) {
    // In two parts, to check that they are joined.
    const auto bytes = std::as_bytes(std::span(content));
    const std::span<const std::byte> parts[] = {
        bytes.first(bytes.size() / 2), {}, bytes.subspan(bytes.size() / 2)};
    return store.Put(name, parts);
  }
  static std::string Read(CheckpointStore& store, std::string_view name, std::uint64_t offset,
                          std::size_t size) {
    std::string content(size, '?');
    const Status read = store.Read(name, offset, std::as_writable_bytes(std::span(content)));
    return read ? content : std::string(ToString(read.error().code));
  }

  fs::path directory_;
};

// The contract of both stores.
void CheckConformance(CheckpointStore& store, auto put, auto read) {
  EXPECT_TRUE(store.List("")->empty());
  EXPECT_TRUE(store.Remove("none"));
  EXPECT_TRUE(store.Remove("no/such"));
  EXPECT_EQ(read("none", 0, 1), "NotFound");
  ASSERT_TRUE(put("b/2", "two"));
  ASSERT_TRUE(put("b/1", "old content"));
  ASSERT_TRUE(put("b/1", "one"));
  ASSERT_TRUE(put("a/x", ""));
  ASSERT_TRUE(put("bb", "not below b"));
  EXPECT_EQ(read("b/1", 0, 3), "one");
  EXPECT_EQ(read("b/1", 1, 2), "ne");
  EXPECT_EQ(read("b/1", 3, 0), "");
  EXPECT_EQ(read("b/1", 0, 4), "Corrupt") << "the object is shorter";
  EXPECT_EQ(*store.List(""),
            (std::vector<StoredObject>{{"a/x", 0}, {"b/1", 3}, {"b/2", 3}, {"bb", 11}}));
  EXPECT_EQ(*store.List("b/"), (std::vector<StoredObject>{{"b/1", 3}, {"b/2", 3}}));
  EXPECT_EQ(store.List("b")->size(), 3U);
  EXPECT_TRUE(store.List("c/")->empty());
  EXPECT_TRUE(store.Remove("b/1"));
  EXPECT_TRUE(store.Remove("b/1"));
  EXPECT_EQ(*store.List("b/"), (std::vector<StoredObject>{{"b/2", 3}}));
}

TEST_F(FileStoreTest, KeepsObjects) {
  FileStore files(directory_ / "checkpoints" / "uid");
  CheckConformance(
      files, [&](auto name, auto content) { return Put(files, name, content); },
      [&](auto name, auto offset, auto size) {
        return Read(files, name, static_cast<std::uint64_t>(offset),
                    static_cast<std::size_t>(size));
      });
  EXPECT_FALSE(fs::exists(directory_ / "checkpoints" / "uid" / "c"));
  EXPECT_TRUE(files.Remove("b/2"));
  EXPECT_FALSE(fs::exists(directory_ / "checkpoints" / "uid" / "b")) << "no empty directories";
  EXPECT_TRUE(fs::exists(directory_ / "checkpoints" / "uid"));

  MemoryStore memory;
  CheckConformance(
      memory, [&](auto name, auto content) { return Put(memory, name, content); },
      [&](auto name, auto offset, auto size) {
        return Read(memory, name, static_cast<std::uint64_t>(offset),
                    static_cast<std::size_t>(size));
      });
}

TEST_F(FileStoreTest, SavesRestoresAndPrunesCheckpoints) {
  FileStore store(directory_ / "uid");
  for (const std::uint64_t step : {100U, 200U, 300U}) {
    TrainingState state(step);
    const auto saved = SaveCheckpoint(store, LabelAt(step), state.View());
    ASSERT_TRUE(saved) << saved.error();
    ASSERT_TRUE(PruneTo(store, saved->position, 2));
  }
  std::size_t directories = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(directory_ / "uid"))
    ++directories;
  EXPECT_EQ(directories, 2U);

  // A learner that died during a write leaves a part behind.
  const fs::path attempt = directory_ / "uid" / "step-000000000250-t000000000260-m2.4";
  fs::create_directory(attempt);
  std::ofstream(attempt / "model-00001-of-00001.safetensors.part") << "half";
  const auto restored = RestoreNewest(store, LabelAt(0).job);
  ASSERT_TRUE(restored) << restored.error();
  TrainingState want(300);
  EXPECT_EQ(Contents(restored->state.view()), Contents(want.View()));
  ASSERT_TRUE(PruneTo(store, LabelAt(300).position, 2));
  EXPECT_FALSE(fs::exists(attempt));
}

TEST_F(FileStoreTest, WritesManyPartsAndReportsWhatTheSystemSays) {
  FileStore store(directory_);
  std::vector<std::string> texts;
  std::string whole;
  for (int i = 0; i < 3000; ++i) whole += texts.emplace_back(std::to_string(i));
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& text : texts) parts.push_back(std::as_bytes(std::span(text)));
  ASSERT_TRUE(store.Put("many", parts));
  EXPECT_EQ(Read(store, "many", 0, whole.size()), whole);

  ASSERT_TRUE(Put(store, "file", "x"));
  const Status below_a_file = Put(store, "file/x", "y");
  ASSERT_FALSE(below_a_file);
  EXPECT_EQ(below_a_file.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(below_a_file.error().message.find("file"), std::string::npos);
}

// As learners do that each find all slices of a checkpoint present.
TEST_F(FileStoreTest, SeveralMayPutTheSameObjectAtATime) {
  const std::string content(1 << 16, 'x');
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> writers;
    for (const std::string_view name : {"a", "b", "c"}) {
      writers.emplace_back([&, name] {
        FileStore store(directory_, name);
        for (int i = 0; i < 30; ++i) {
          if (!Put(store, "manifest.json", content)) ++failed;
          if (Read(store, "manifest.json", 0, content.size()) != content) ++failed;
        }
      });
    }
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(*FileStore(directory_).List(""),
            (std::vector<StoredObject>{{"manifest.json", content.size()}}));
}

// As when one learner restores, or a tool lists, while another prunes: a directory that disappears
// between two system calls hides no other object.
TEST_F(FileStoreTest, ListsAllThatStaysWhileOthersPrune) {
  constexpr int kDirectories = 40;
  std::vector<std::string> stay;
  for (int i = 0; i < kDirectories; ++i) {
    stay.push_back("stays-" + std::to_string(i) + "/manifest.json");
    fs::create_directory((directory_ / stay.back()).parent_path());
    std::ofstream(directory_ / stay.back()) << "x";
  }
  std::ranges::sort(stay);
  const std::jthread prunes([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (int i = 0; i < kDirectories; ++i) {
        fs::create_directory(directory_ / ("goes-" + std::to_string(i)));
      }
      for (int i = 0; i < kDirectories; ++i) {
        fs::remove(directory_ / ("goes-" + std::to_string(i)));
      }
    }
  });
  FileStore store(directory_);
  for (int round = 0; round < 300; ++round) {
    const auto listed = store.List("");
    ASSERT_TRUE(listed) << listed.error();
    std::vector<std::string> names;
    for (const StoredObject& object : *listed) names.push_back(object.name);
    ASSERT_EQ(names, stay) << "round " << round;
  }
}

TEST_F(FileStoreTest, OnAFullVolumeThePartThatWasWrittenGoes) {
  FileStore store(directory_);
  ASSERT_TRUE(Put(store, "model", "old"));
  fs::create_symlink("/dev/full", directory_ / "model.part");
  const Status put = Put(store, "model", "newer");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().message,
            "write " + (directory_ / "model.part").string() + ": No space left on device");
  EXPECT_EQ(WriteProblemOf(put.error()), "VolumeFull");
  EXPECT_EQ(*store.List(""), (std::vector<StoredObject>{{"model", 3}}));
  EXPECT_EQ(Read(store, "model", 0, 3), "old");
  EXPECT_FALSE(fs::is_symlink(directory_ / "model.part"));
}

TEST(VolumeError, SaysWhatIsTheMatterWithTheVolume) {
  const struct {
    int system_error;
    ErrorCode code;
    std::string_view problem;
  } kCases[] = {{ENOSPC, ErrorCode::kUnavailable, "VolumeFull"},
                {EDQUOT, ErrorCode::kUnavailable, "VolumeFull"},
                {EFBIG, ErrorCode::kUnavailable, "VolumeFull"},
                {EROFS, ErrorCode::kDenied, "VolumeReadOnly"},
                {EACCES, ErrorCode::kDenied, "VolumeReadOnly"},
                {EPERM, ErrorCode::kDenied, "VolumeReadOnly"},
                {EIO, ErrorCode::kUnavailable, "WriteFailed"},
                {ESTALE, ErrorCode::kUnavailable, "WriteFailed"}};
  for (const auto& c : kCases) {
    const Error error = VolumeError("write /checkpoints/x", c.system_error);
    EXPECT_EQ(error.code, c.code) << error;
    EXPECT_EQ(WriteProblemOf(error), c.problem) << error;
  }
}

}  // namespace
}  // namespace pliant
