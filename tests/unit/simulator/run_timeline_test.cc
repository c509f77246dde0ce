#include "simulator/report/run_timeline.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/simulator/report_records.h"

namespace pliant::simulator {
namespace {

using nlohmann::json;

json DocumentOf(const RunRecord& run) {
  const auto text = TimelineOf(run);
  EXPECT_TRUE(text);
  return text ? json::parse(*text) : json();
}

// The document read as docs/timeline.md says, by a reader of its own.
class Reader {
 public:
  explicit Reader(const RunRecord& run) : document_(DocumentOf(run)) {
    const json& frame = document_.at("frame");
    if (frame.contains("held")) {
      for (const auto& [job, nodes] : frame.at("held").items())
        held[job] = nodes.at("cluster").at("gpus");
    }
    if (frame.contains("job")) {
      for (const auto& [job, values] : frame.at("job").items()) phases[job] = values.at("phase");
    }
  }

  // Applies the changes up to this time, which is not before that of the last call.
  void MoveTo(std::int64_t time) {
    const json& changes = document_.at("changes");
    for (; next_ < changes.size() && changes[next_].at("at") <= time; ++next_) {
      const json& change = changes[next_];
      if (change.contains("held")) {
        held[change.at("held")] =
            change.at("set").is_null() ? 0 : change.at("set").at("gpus").get<int>();
      } else if (change.at("set").contains("phase")) {
        phases[change.at("job")] = change.at("set").at("phase");
      }
    }
  }

  const json& document() const { return document_; }
  bool at_end() const { return next_ == document_.at("changes").size(); }

  std::map<std::string, int> held;
  std::map<std::string, std::string> phases;

 private:
  const json document_;
  std::size_t next_ = 0;
};

int GpusAt(const JobRecord& job, std::int64_t time) {
  int gpus = 0;
  for (const SizeAt& size : job.sizes) {
    if (size.at <= time) gpus = size.gpus;
  }
  return job.completed && *job.completed <= time ? 0 : gpus;
}

TEST(TimelineOfTest, HasTheRunsBeginningEndAndCapacity) {
  const json document = DocumentOf(ThreeJobs());
  EXPECT_EQ(document.at("from"), 0);
  EXPECT_EQ(document.at("begin"), 0);
  EXPECT_EQ(document.at("origin"), 0);
  EXPECT_EQ(document.at("now"), 100'000);
  EXPECT_EQ(document.at("frame").at("node"), json::parse(R"({"cluster": {"gpus": 4}})"));
  EXPECT_EQ(document.at("frame").at("job"),
            json::parse(R"({"a": {"queue": "research", "phase": "Running", "created": 0,
                             "reason": "application cifar10"}})"));
  RunRecord late = ThreeJobs();
  late.jobs.erase(late.jobs.begin());
  EXPECT_EQ(DocumentOf(late).at("origin"), 20'000);
}

TEST(TimelineOfTest, JobsWaitRunAndEnd) {
  Reader reader(ThreeJobs());
  const auto seen = [&](std::int64_t time) {
    reader.MoveTo(time);
    return reader.phases;
  };
  using Phases = std::map<std::string, std::string>;
  EXPECT_EQ(seen(0), (Phases{{"a", "Running"}}));
  EXPECT_EQ(seen(20'000), (Phases{{"a", "Running"}, {"b", "Queued"}}));
  EXPECT_EQ(seen(30'000), (Phases{{"a", "Running"}, {"b", "Running"}}));
  EXPECT_EQ(seen(50'000), (Phases{{"a", "Succeeded"}, {"b", "Running"}}));
  EXPECT_EQ(seen(100'000), (Phases{{"a", "Succeeded"}, {"b", "Succeeded"}, {"c", "Queued"}}));
}

TEST(TimelineOfTest, AnEvictedJobWaitsAgainAndAnUnfinishedOneHoldsToTheEnd) {
  RunRecord run = ThreeJobs();
  run.jobs[0].completed.reset();
  run.jobs[0].sizes = {{0, 4, 64}, {30'000, 0, 0}, {60'000, 2, 64}};
  Reader reader(run);
  for (const auto& [time, phase, gpus] :
       std::vector<std::tuple<int, std::string, int>>{{29'999, "Running", 4},
                                                      {30'000, "Queued", 0},
                                                      {60'000, "Running", 2},
                                                      {100'000, "Running", 2}}) {
    reader.MoveTo(time);
    EXPECT_EQ(reader.phases.at("a"), phase) << time;
    EXPECT_EQ(reader.held.at("a"), gpus) << time;
  }
}

TEST(TimelineOfTest, GpusOfEachJobAreThoseOfTheRecordAtEachTime) {
  for (const RunRecord& run :
       {ThreeJobs(), BusyRun("p", 40, 1), CompletedAfter("p", "w", {5, 5, 9})}) {
    std::set<std::int64_t> times;
    for (const JobRecord& job : run.jobs) {
      for (const SizeAt& size : job.sizes) times.insert({size.at - 1, size.at});
      times.insert({job.submitted, job.completed.value_or(run.end)});
    }
    Reader reader(run);
    for (const std::int64_t time : times) {
      if (time < reader.document().at("from")) continue;
      reader.MoveTo(time);
      if (time == run.end) continue;  // nothing is held behind the end
      for (const JobRecord& job : run.jobs) {
        const auto held = reader.held.find(job.name);
        ASSERT_EQ(held == reader.held.end() ? 0 : held->second, GpusAt(job, time))
            << job.name << " at " << time;
      }
    }
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(TimelineOfTest, EqualAndHostileNamesStayDifferentJobs) {
  RunRecord run = ThreeJobs();
  const std::string huge(1'000'000, 'x');
  run.jobs[0].name = run.jobs[1].name = huge;
  run.jobs[2].name = "<script>\xff\x1b[31m";
  run.jobs[2].queue = run.jobs[2].application = huge;
  const std::optional<std::string> text = TimelineOf(run);
  ASSERT_TRUE(text);
  EXPECT_LT(text->size(), 4'000U);
  Reader reader(run);
  reader.MoveTo(run.end);
  EXPECT_EQ(reader.phases.size(), 3U);
  EXPECT_TRUE(reader.phases.contains("<script>\xef\xbf\xbd\xef\xbf\xbd[31m"));
}

TEST(TimelineOfTest, ARunWithoutASpanHasNone) {
  EXPECT_EQ(TimelineOf({.end = 5}), std::nullopt);
  EXPECT_EQ(TimelineOf(CompletedAfter("p", "w", {0})), std::nullopt);
}

TEST(TimelineOfTest, ARunWithTooManyChangesHasNone) {
  RunRecord run = ThreeJobs();
  for (int at = 0; at < 300'000; ++at) run.jobs[1].sizes.push_back({101'000 + at, 1 + at % 4, 1});
  run.jobs[1].completed = run.end = 500'000;
  EXPECT_FALSE(TimelineOf(run).has_value());
}

}  // namespace
}  // namespace pliant::simulator
