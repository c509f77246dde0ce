#include "trainer/tools/checkpoint_tool.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/file_store.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kJob = "0a1b2c3d-0000-0000-0000-000000000001";

class CheckpointToolTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "checkpoint-tool-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    volume_ = pattern;
    FileStore store(job());
    for (const std::uint64_t step : {100U, 200U}) {
      TrainingState state(step);
      ASSERT_TRUE(SaveCheckpoint(store, LabelAt(step), state.View()));
    }
  }
  void TearDown() override { fs::remove_all(volume_); }

  fs::path job() const { return volume_ / kJob; }
  fs::path newest() const { return job() / "step-000000000200-t000000000210-m2.5"; }

  // Returns the exit code; the output is in said_ and complained_.
  int Run(std::vector<std::string> arguments) {
    std::vector<const char*> argv = {"pliant-checkpoint"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::ostringstream out;
    std::ostringstream err;
    const int code = RunCheckpointTool(static_cast<int>(argv.size()), argv.data(), out, err);
    said_ = out.str();
    complained_ = err.str();
    return code;
  }
  void Damage(const fs::path& file) {
    std::fstream content(file, std::ios::in | std::ios::out | std::ios::binary);
    content.seekp(-1, std::ios::end);
    content.put('!');
  }
  // The state of each checkpoint.
  std::vector<std::string> States(const std::string& command, const fs::path& folder, int code) {
    EXPECT_EQ(Run({command, folder, "--json"}), code) << complained_;
    std::vector<std::string> states;
    for (const json& found : json::parse(said_)) {
      states.push_back(fs::path(found.at("path").get<std::string>()).filename().string() + " " +
                       found.at("state").get<std::string>());
    }
    return states;
  }

  fs::path volume_;
  std::string said_;
  std::string complained_;
};

TEST_F(CheckpointToolTest, ListsAVolumeAJobOrACheckpoint) {
  fs::create_directories(volume_ / "lost+found");
  for (const fs::path& folder : {volume_, job()}) {
    EXPECT_THAT(States("list", folder, 0),
                ElementsAre("step-000000000200-t000000000210-m2.5 complete",
                            "step-000000000100-t000000000110-m2.5 complete"));
  }
  EXPECT_THAT(States("list", newest(), 0),
              ElementsAre("step-000000000200-t000000000210-m2.5 complete"));
  ASSERT_EQ(Run({"list", volume_}), 0);
  EXPECT_THAT(said_, HasSubstr("JOB "));
  EXPECT_THAT(said_, HasSubstr(std::string(kJob) +
                               "  step-000000000200-t000000000210-m2.5  200   1      "));
  EXPECT_THAT(said_, HasSubstr("  complete\n"));

  const json all = (Run({"list", job(), "--json"}), json::parse(said_));
  EXPECT_EQ(all.at(0).at("job"), kJob);
  EXPECT_EQ(all.at(0).at("globalBatchSize"), 256);
}

TEST_F(CheckpointToolTest, VerifiesEveryByte) {
  EXPECT_THAT(States("verify", job(), 0),
              ElementsAre("step-000000000200-t000000000210-m2.5 verified",
                          "step-000000000100-t000000000110-m2.5 verified"));
  Damage(newest() / "model-00001-of-00001.safetensors");
  EXPECT_THAT(States("verify", job(), 1),
              ElementsAre("step-000000000200-t000000000210-m2.5 damaged",
                          "step-000000000100-t000000000110-m2.5 verified"));
  ASSERT_EQ(Run({"verify", job()}), 1);
  EXPECT_THAT(said_, HasSubstr("damaged: model-00001-of-00001.safetensors: checksum "));

  // An attempt that did not end does not count as damaged.
  fs::remove(newest() / "manifest.json");
  EXPECT_THAT(States("verify", job(), 0),
              ElementsAre("step-000000000200-t000000000210-m2.5 incomplete",
                          "step-000000000100-t000000000110-m2.5 verified"));
  EXPECT_THAT(States("verify", newest(), 1),
              ElementsAre("step-000000000200-t000000000210-m2.5 incomplete"));
  fs::remove(job() / "step-000000000100-t000000000110-m2.5" /
             "optimizer-00001-of-00001.safetensors");
  EXPECT_THAT(States("list", job() / "step-000000000100-t000000000110-m2.5", 0),
              ElementsAre("step-000000000100-t000000000110-m2.5 damaged"));
}

TEST_F(CheckpointToolTest, ExportsTheFinalModelElseTheNewestThatVerifies) {
  const fs::path file = volume_ / "out" / "model.safetensors";
  Damage(newest() / "optimizer-00001-of-00001.safetensors");
  ASSERT_EQ(Run({"export", job(), file}), 0) << complained_;
  EXPECT_THAT(complained_,
              HasSubstr("step-000000000200-t000000000210-m2.5 is passed over: optimizer"));
  EXPECT_THAT(said_, HasSubstr("step-000000000100-t000000000110-m2.5 (step 100) exported to"));
  const auto content = [](const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return (std::ostringstream() << in.rdbuf()).str();
  };
  EXPECT_EQ(content(file), content(job() / "step-000000000100-t000000000110-m2.5" /
                                   "model-00001-of-00001.safetensors"));

  FileStore store(job());
  TrainingState state(300);
  ASSERT_TRUE(ExportFinal(store, LabelAt(300), state.View()));
  ASSERT_EQ(Run({"export", job(), file, "--json"}), 0) << complained_;
  EXPECT_EQ(json::parse(said_).at("step"), 300);
  EXPECT_EQ(content(file), content(job() / "final" / "model.safetensors"));
  ASSERT_EQ(Run({"export", job() / "step-000000000100-t000000000110-m2.5", file}), 0);
  EXPECT_EQ(Run({"export", newest(), file}), 1);
  EXPECT_THAT(complained_, HasSubstr("no checkpoint that verifies"));
}

TEST_F(CheckpointToolTest, SaysWhatIsWrong) {
  EXPECT_EQ(Run({"list", volume_ / "none"}), 1);
  EXPECT_THAT(complained_, HasSubstr("no such folder"));
  fs::create_directories(volume_ / "empty");
  EXPECT_EQ(Run({"verify", volume_ / "empty"}), 1);
  EXPECT_THAT(complained_, HasSubstr("no checkpoint"));
  fs::copy(job(), volume_ / "another", fs::copy_options::recursive);
  EXPECT_EQ(Run({"export", volume_, volume_ / "out"}), 1);
  EXPECT_THAT(complained_, HasSubstr("several jobs"));
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {}, {"list"}, {"export", job()}, {"show", job()}, {"list", job(), "--yaml"}}) {
    EXPECT_EQ(Run(arguments), 2);
    EXPECT_FALSE(complained_.empty());
  }
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(said_, HasSubstr("Exit codes: 0"));
}

}  // namespace
}  // namespace pliant
