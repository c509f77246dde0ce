#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "simulator/baselines/optimus.h"
#include "simulator/baselines/tiresias.h"
#include "simulator/events/event_engine.h"
#include "simulator/inputs/scenario.h"
#include "simulator/model/read_profiles.h"
#include "simulator/model/workload.h"
#include "simulator/report/sign_test.h"
#include "simulator/rounds/round_engine.h"
#include "simulator/scenario_input.h"
#include "tests/bench/operator/rows.h"
#include "tests/fidelity/published.h"

// Measures what the planner is worth on eight published workloads of 160 jobs on 64 GPUs, and how
// fast the simulator is. Completion times depend on nothing but the source; times are processor
// time, so that they are comparable on a busy machine.
namespace pliant::simulator {
namespace {

const std::filesystem::path kData = PLIANT_SOURCE_DIR "/tests/data/pollux";
constexpr int kWorkloads = 8;
constexpr int kQuickWorkloads = 2;

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::filesystem::path WorkloadFile(const std::string& load, int workload) {
  return kData / ("workloads-" + load) / Format("workload-{}.csv", workload);
}

// How jobs are planned, and what a run costs them.
struct Setting {
  std::string name;
  planner::QueuePolicy policy = planner::QueuePolicy::kThroughput;
  BatchRule batch = BatchRule::kFixed;
  bool live = true;  // otherwise restarts of 30 s, planned in rounds of 60 s
  KnownSpeeds speeds = KnownSpeeds::kTrue;
  bool weighted = false;  // jobs with little left weigh more
  double noise = 0;
  std::optional<double> aim_seconds;
};

const Setting kFairShareRestart{.name = "FairShare, fixed batch, restarts",
                                .policy = planner::QueuePolicy::kFairShare,
                                .live = false};
const Setting kFairShareLive{.name = "FairShare, fixed batch, live",
                             .policy = planner::QueuePolicy::kFairShare};
const std::vector<Setting> kBySpeed = {
    {.name = "Throughput, fixed batch, restarts", .live = false, .aim_seconds = 3700},
    {.name = "Throughput, fixed batch, live", .aim_seconds = 3420},
    {.name = "Throughput, fixed batch, live, learned", .speeds = KnownSpeeds::kLearned},
    {.name = "Throughput, batch from the state, live",
     .batch = BatchRule::kFromState,
     .aim_seconds = 2900},
    {.name = "Throughput, recorded batch, restarts", .batch = BatchRule::kRecorded, .live = false},
    {.name = "Throughput, recorded batch, live",
     .batch = BatchRule::kRecorded,
     .aim_seconds = 2500},
    {.name = "Throughput, recorded batch, live, weighted",
     .batch = BatchRule::kRecorded,
     .weighted = true},
    {.name = "Throughput, recorded batch, live, learned",
     .batch = BatchRule::kRecorded,
     .speeds = KnownSpeeds::kLearned},
    {.name = "Throughput, recorded batch, restarts, learned, weighted",
     .batch = BatchRule::kRecorded,
     .live = false,
     .speeds = KnownSpeeds::kLearned,
     .weighted = true,
     .aim_seconds = 2750},
    {.name = "Throughput, recorded batch, live, learned, weighted",
     .batch = BatchRule::kRecorded,
     .speeds = KnownSpeeds::kLearned,
     .weighted = true,
     .aim_seconds = 2500},
    {.name = "the same, each measurement up to 10 % off",
     .batch = BatchRule::kRecorded,
     .speeds = KnownSpeeds::kLearned,
     .weighted = true,
     .noise = 0.1},
};

// Mean completion time of a run in seconds, all of whose jobs have completed.
Result<double> MeanCompletion(const RunRecord& run) {
  double sum = 0;
  for (const JobRecord& job : run.jobs) {
    if (!job.completed) return Invalid(job.name + " did not complete");
    sum += static_cast<double>(*job.completed - job.submitted) / 1000;
  }
  return sum / static_cast<double>(run.jobs.size());
}

class Bench {
 public:
  Bench(Profiles profiles, int workloads) : profiles_(std::move(profiles)), workloads_(workloads) {}

  Status Run() {
    RETURN_IF_ERROR(TimeFidelity());
    ASSIGN_OR_RETURN(const PublishedTimes published,
                     ReadPublished(kData / "completion-times-1.0.csv"));
    std::vector<double> pollux;
    for (int workload = 1; workload <= workloads_; ++workload) {
      double sum = 0;
      int jobs = 0;
      for (const auto& [key, times] : published) {
        if (key.first != workload) continue;
        sum += static_cast<double>(times.pollux);
        ++jobs;
      }
      pollux.push_back(sum / jobs);
    }
    RETURN_IF_ERROR(Compare({kFairShareRestart, kFairShareLive}, std::nullopt));
    RETURN_IF_ERROR(Compare(kBySpeed, pollux));
    bench::Report({.name = "160 jobs by events, processor time of the slowest run",
                   .value = slowest_,
                   .unit = "s",
                   .aim = 2},
                  rows_);
    return TimeLargeCluster();
  }

  const std::vector<bench::Row>& rows() const { return rows_; }

 private:
  // All runs of tests/fidelity, or as many loads of them as are wanted.
  Status TimeFidelity() {
    const double begin = ProcessorSeconds();
    int runs = 0;
    for (const char* load : {"0.5", "1.0", "1.5", "2.0"}) {
      for (int workload = 1; workload <= workloads_; ++workload) {
        ASSIGN_OR_RETURN(const auto jobs, ReadWorkload(WorkloadFile(load, workload), profiles_));
        Tiresias tiresias;
        Optimus optimus;
        for (RoundPolicy* const policy :
             {static_cast<RoundPolicy*>(&tiresias), static_cast<RoundPolicy*>(&optimus)}) {
          ASSIGN_OR_RETURN(const auto outcomes, RunRounds(profiles_, jobs, {}, *policy));
          runs += outcomes.empty() ? 0 : 1;
        }
      }
    }
    bench::Report({.name = Format("{} runs in rounds, processor time", runs),
                   .value = ProcessorSeconds() - begin,
                   .unit = "s",
                   .aim = 20},
                  rows_);
    return {};
  }

  Result<std::vector<double>> MeansOf(const Setting& setting) {
    std::vector<double> means;
    for (int workload = 1; workload <= workloads_; ++workload) {
      const double begin = ProcessorSeconds();
      ASSIGN_OR_RETURN(const Scenario scenario,
                       ReadWorkloadScenario(WorkloadFile("1.0", workload), "16x4", profiles_));
      ASSIGN_OR_RETURN(const RunInput input, InputOf(profiles_, scenario,
                                                     {.policy = setting.policy,
                                                      .favors_short_jobs = setting.weighted,
                                                      .batch = setting.batch}));
      RunOptions options{.speeds = setting.speeds, .measurement_noise = setting.noise};
      if (!setting.live) {
        options.resizing = Restarting{};
        options.plan_every = 60'000;
      }
      ASSIGN_OR_RETURN(const double mean, MeanCompletion(RunEvents(input, options)));
      means.push_back(mean);
      slowest_ = std::max(slowest_, ProcessorSeconds() - begin);
    }
    return means;
  }

  // `pollux`: the published means by workload; absent: no comparison.
  Status Compare(const std::vector<Setting>& settings,
                 const std::optional<std::vector<double>>& pollux) {
    for (const Setting& setting : settings) {
      ASSIGN_OR_RETURN(const std::vector<double> means, MeansOf(setting));
      const auto mean_of = [](const std::vector<double>& all) {
        return std::reduce(all.begin(), all.end()) / static_cast<double>(all.size());
      };
      // An aim is for all workloads.
      const bool is_whole = workloads_ == kWorkloads;
      bench::Report({.name = setting.name + ", mean completion",
                     .value = mean_of(means),
                     .unit = "s",
                     .rival = pollux ? std::optional(mean_of(*pollux)) : std::nullopt,
                     .aim = is_whole ? setting.aim_seconds : std::nullopt},
                    rows_);
      if (!pollux) continue;
      int better = 0;
      for (std::size_t index = 0; index < means.size(); ++index) {
        if (means[index] < (*pollux)[index]) ++better;
      }
      const int worse = static_cast<int>(means.size()) - better;
      const std::string workloads = Format(" ({})", Sentence(TestSigns(better, worse, 0)));
      std::string each;
      for (const double mean : means) each += Format(" {:.0f}", mean);
      std::printf("    by workload:%s; Pollux%s\n", each.c_str(), workloads.c_str());
    }
    return {};
  }

  // 32 copies of a workload at once.
  Status TimeLargeCluster() {
    constexpr int kCopies = 32;
    ASSIGN_OR_RETURN(Scenario scenario,
                     ReadWorkloadScenario(WorkloadFile("1.0", 1), "512x4", profiles_));
    const std::vector<ScenarioJob> jobs = scenario.jobs;
    for (int copy = 1; copy < kCopies; ++copy) {
      for (ScenarioJob job : jobs) {
        job.spec.name += Format("-{}", copy);
        scenario.jobs.push_back(std::move(job));
      }
    }
    ASSIGN_OR_RETURN(const RunInput input,
                     InputOf(profiles_, scenario, {.policy = planner::QueuePolicy::kThroughput}));
    const double begin = ProcessorSeconds();
    ASSIGN_OR_RETURN(const double mean, MeanCompletion(RunEvents(input, {})));
    std::printf("    mean completion: %.0f s\n", mean);
    bench::Report({.name = Format("{} jobs on {} GPUs by events, processor time",
                                  scenario.jobs.size(), 512 * 4),
                   .value = ProcessorSeconds() - begin,
                   .unit = "s",
                   .aim = 60},
                  rows_);
    return {};
  }

  const Profiles profiles_;
  const int workloads_;
  double slowest_ = 0;
  std::vector<bench::Row> rows_;
};

}  // namespace
}  // namespace pliant::simulator

int main(int argc, char** argv) {
  using namespace pliant::simulator;
  CLI::App app{"Measures what planning by speed is worth, and the simulator."};
  std::string json;
  bool quick = false;
  app.add_option("--json", json, "File for the rows");
  app.add_flag("--quick", quick, "Two workloads instead of eight, and no aims for their means");
  CLI11_PARSE(app, argc, argv);
  auto profiles = ReadProfiles(kData);
  if (!profiles) {
    std::fprintf(stderr, "%s\n", profiles.error().message.c_str());
    return 1;
  }
  Bench bench(*std::move(profiles), quick ? kQuickWorkloads : kWorkloads);
  const pliant::Status done = bench.Run();
  if (!done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return 1;
  }
  if (!json.empty()) pliant::bench::Write(bench.rows(), json);
  return 0;
}
