#include "trainer/process/metrics_file.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace pliant {
namespace {

namespace fs = std::filesystem;

using namespace std::chrono_literals;

class MetricsFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "pliant-metrics-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path path() const { return folder_ / "job" / "metrics.jsonl"; }
  std::string Content() const {
    std::ifstream in(path());
    return (std::ostringstream() << in.rdbuf()).str();
  }
  static std::string Line(Tick tick) { return R"({"tick":)" + std::to_string(tick) + "}"; }
  static std::string Lines(std::initializer_list<Tick> ticks) {
    std::string text;
    for (const Tick tick : ticks) text += Line(tick) + '\n';
    return text;
  }
  static void Append(MetricsSink& file, Tick tick) { file.Append(tick, Line(tick)); }

  fs::path folder_;
};

TEST_F(MetricsFileTest, IsCutWhereTrainingContinues) {
  const auto file = NewMetricsFile(path());
  file->CutFrom(3);  // the file does not exist yet
  for (const Tick tick : {1, 2, 3, 4}) Append(*file, tick);
  EXPECT_EQ(Content(), Lines({1, 2, 3, 4}));
  std::ofstream(path(), std::ios::app) << R"({"tick":2, "to)";  // an incomplete line
  file->CutFrom(3);
  EXPECT_EQ(Content(), Lines({1, 2}));
  Append(*file, 3);
  EXPECT_EQ(Content(), Lines({1, 2, 3}));
  file->CutFrom(0);
  EXPECT_EQ(Content(), "");
}

TEST_F(MetricsFileTest, OneWhoLeavesAddsNothingBehindItsSuccessor) {
  const auto before = NewMetricsFile(path());
  const auto after = NewMetricsFile(path());
  for (const Tick tick : {1, 2, 3}) Append(*before, tick);
  after->CutFrom(3);
  for (const Tick tick : {3, 4}) Append(*after, tick);
  for (const Tick tick : {3, 4}) Append(*before, tick);
  EXPECT_EQ(Content(), Lines({1, 2, 3, 4}));
  Append(*before, 5);
  Append(*after, 5);
  EXPECT_EQ(Content(), Lines({1, 2, 3, 4, 5}));
}

TEST_F(MetricsFileTest, ALongFileIsCutByItsEnd) {
  const auto file = NewMetricsFile(path());
  std::string want;
  for (Tick tick = 1; tick <= 3000; ++tick) {
    Append(*file, tick);
    if (tick < 500) want += Line(tick) + '\n';
  }
  std::ofstream(path(), std::ios::app) << std::string(100'000, 'x') << "\nno line\n";
  file->CutFrom(500);
  EXPECT_EQ(Content(), want);
}

TEST_F(MetricsFileTest, AFailedWriteLosesOnlyItsOwnLine) {
  fs::create_directories(path().parent_path());
  const auto file = NewMetricsFile(path());
  fs::create_directory(path());  // makes every write fail
  Append(*file, 1);
  file->CutFrom(1);
  fs::remove(path());
  Append(*file, 2);
  EXPECT_EQ(Content(), Lines({2}));
}

// A line that does not fit is removed completely.
TEST_F(MetricsFileTest, AFullVolumeSpoilsNoLine) {
  const auto file = NewMetricsFile(path());
  Append(*file, 1);
  const auto size = fs::file_size(path());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto held = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = size + 3;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Append(*file, 2);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, held);
  EXPECT_EQ(Content(), Lines({1}));
  Append(*file, 3);
  EXPECT_EQ(Content(), Lines({1, 3}));
}

TEST_F(MetricsFileTest, ANewMembershipShowsNoLineAgain) {
  const auto file = NewMetricsFile(path());
  std::string shown;
  const auto metrics =
      NewShownMetrics(*file, [&](std::string_view line) { shown += std::string(line) + '\n'; });
  for (const Tick tick : {1, 2}) Append(*metrics, tick);
  for (int memberships = 0; memberships < 3; ++memberships) {  // as rank 0 of each membership
    metrics->CutFrom(2);
    Append(*metrics, 2);
  }
  Append(*metrics, 3);
  metrics->CutFrom(2);  // after a restore
  Append(*metrics, 2);
  EXPECT_EQ(shown, Lines({1, 2, 3, 2}));
  EXPECT_EQ(Content(), Lines({1, 2}));
}

TEST(BackgroundMetrics, NobodyWaitsForAVolumeThatHangs) {
  std::vector<std::string> seen;
  std::promise<void> answers;
  class Slow final : public MetricsSink {
   public:
    Slow(std::vector<std::string>& seen, std::future<void> answer)
        : seen_(seen), answer_(std::move(answer)) {}
    void Append(Tick tick, std::string_view line) override {
      if (answer_.valid()) answer_.get();
      seen_.push_back(std::to_string(tick) + std::string(line));
    }
    void CutFrom(Tick tick) override { seen_.push_back("cut " + std::to_string(tick)); }

   private:
    std::vector<std::string>& seen_;
    std::future<void> answer_;
  };
  {
    const auto metrics = NewBackgroundMetrics(std::make_unique<Slow>(seen, answers.get_future()));
    metrics->Append(1, "a");
    metrics->CutFrom(1);
    metrics->Append(2, "b");
    answers.set_value();  // had a call blocked, this would not be reached
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1a", "cut 1", "2b"})) << "all of it, in order";
}

TEST(BackgroundMetrics, AnExceptionCostsOneLine) {
  class Throwing final : public MetricsSink {
   public:
    explicit Throwing(std::vector<Tick>& seen) : seen_(seen) {}
    void Append(Tick tick, std::string_view) override {
      if (tick == 1) throw std::bad_alloc();
      seen_.push_back(tick);
    }
    void CutFrom(Tick) override {}

   private:
    std::vector<Tick>& seen_;
  };
  std::vector<Tick> seen;
  {
    const auto metrics = NewBackgroundMetrics(std::make_unique<Throwing>(seen));
    for (const Tick tick : {1, 2}) metrics->Append(tick, "{}");
  }
  EXPECT_EQ(seen, std::vector<Tick>{2});
}

}  // namespace
}  // namespace pliant
