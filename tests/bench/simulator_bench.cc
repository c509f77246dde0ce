#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>

#include "base/format.h"
#include "simulator/inputs/scenario.h"
#include "simulator/model/read_profiles.h"
#include "simulator/scenario_input.h"
using namespace pliant;
using namespace pliant::simulator;
int main(int argc, char** argv) {
  const std::string data = PLIANT_SOURCE_DIR "/tests/data/pollux";
  const auto profiles = ReadProfiles(data);
  if (!profiles) {
    std::printf("%s\n", profiles.error().message.c_str());
    return 1;
  }
  struct Case {
    const char* name;
    planner::QueuePolicy policy;
    bool bias;
    BatchRule batch;
    bool live;
    bool rounds;
    KnownSpeeds speeds = KnownSpeeds::kTrue;
  };
  using enum planner::QueuePolicy;
  const Case cases[] = {
      {"FairShare fixed restart", kFairShare, false, BatchRule::kFixed, false, true},
      {"FairShare fixed live", kFairShare, false, BatchRule::kFixed, true, false},
      {"Throughput fixed restart", kThroughput, false, BatchRule::kFixed, false, true},
      {"Throughput fixed live", kThroughput, false, BatchRule::kFixed, true, false},
      {"Throughput fixed live bias", kThroughput, true, BatchRule::kFixed, true, false},
      {"Throughput state live", kThroughput, false, BatchRule::kFromState, true, false},
      {"Throughput recorded restart", kThroughput, false, BatchRule::kRecorded, false, true},
      {"Throughput recorded live", kThroughput, false, BatchRule::kRecorded, true, false},
      {"Throughput recorded live bias", kThroughput, true, BatchRule::kRecorded, true, false},
      {"Throughput fixed live learned", kThroughput, false, BatchRule::kFixed, true, false,
       KnownSpeeds::kLearned},
      {"Throughput recorded restart learned bias", kThroughput, true, BatchRule::kRecorded, false,
       true, KnownSpeeds::kLearned},
      {"Throughput recorded live learned", kThroughput, false, BatchRule::kRecorded, true, false,
       KnownSpeeds::kLearned},
      {"Throughput recorded live learned bias", kThroughput, true, BatchRule::kRecorded, true,
       false, KnownSpeeds::kLearned},
  };
  for (const Case& c : cases) {
    double sum = 0;
    int resizes = 0, jobs_n = 0, undone = 0;
    long plans = 0;
    const std::clock_t begin = std::clock();
    std::string each;
    std::map<std::string, std::pair<double, int>> apps;
    std::map<std::string, std::pair<double, double>> bt;
    std::map<std::string, double> gp;
    for (int w = 1; w <= 8; ++w) {
      const auto scenario = ReadWorkloadScenario(
          Format("{}/workloads-1.0/workload-{}.csv", data, w), "16x4", *profiles);
      if (!scenario) {
        std::printf("%s\n", scenario.error().message.c_str());
        return 1;
      }
      const InputOptions rules{.policy = c.policy, .favors_short_jobs = c.bias, .batch = c.batch};
      const RunInput input = InputOf(*profiles, *scenario, rules).value();
      RunOptions options;
      if (argc > 1) options.policy.hold_percent = std::atoi(argv[1]);
      options.speeds = c.speeds;
      if (getenv("NOISE")) options.measurement_noise = atof(getenv("NOISE"));
      if (!c.live) options.resizing = Restarting{};
      if (c.rounds) options.plan_every = 60'000;
      const RunRecord run = RunEvents(input, options);
      double mean = 0;
      for (const JobRecord& job : run.jobs) {
        if (!job.completed) {
          ++undone;
          continue;
        }
        if (getenv("APPS")) {
          auto& a = apps[job.application];
          a.first += static_cast<double>(*job.completed - job.submitted) / 1000;
          ++a.second;
          for (size_t i = 0; i + 1 < job.sizes.size(); ++i) {
            double d = static_cast<double>(job.sizes[i + 1].at - job.sizes[i].at);
            bt[job.application].first += d * job.sizes[i].batch;
            bt[job.application].second += d;
            gp[job.application] += d * job.sizes[i].gpus;
          }
        }
        mean += static_cast<double>(*job.completed - job.submitted) / 1000;
        resizes += job.resizes;
        ++jobs_n;
      }
      mean /= static_cast<double>(run.jobs.size());
      each += Format(" {:.0f}", mean);
      sum += mean / 8;
      plans += run.plans;
    }
    std::printf("%-32s %7.0f  resizes %.1f plans %ld cpu %.1f s undone %d |%s\n", c.name, sum,
                1.0 * resizes / jobs_n, plans / 8,
                static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, undone, each.c_str());
    for (auto& [a, v] : apps)
      std::printf("    %s jct %.0f n %d batch %.0f gpus %.1f\n", a.c_str(), v.first / v.second,
                  v.second, bt[a].first / bt[a].second, gp[a] / bt[a].second);
    std::fflush(stdout);
  }
}
