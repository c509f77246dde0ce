#include "tests/unit/simulator/report_records.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/format.h"

namespace pliant::simulator {

RunRecord ThreeJobs() {
  return {.policy = "FairShare",
          .workload = "three",
          .gpus = 4,
          .end = 100'000,
          .plans = 5,
          .jobs = {{.name = "a",
                    .application = "cifar10",
                    .queue = "research",
                    .submitted = 0,
                    .started = 10'000,
                    .completed = 50'000,
                    .deadline = 40'000,
                    .sizes = {{0, 4, 64}, {30'000, 2, 64}, {50'000, 0, 0}},
                    .resizes = 1,
                    .gpu_seconds = 160,
                    .useful_gpu_seconds = 120,
                    .lost_seconds = 3},
                   {.name = "b",
                    .application = "bert",
                    .submitted = 20'000,
                    .started = 40'000,
                    .completed = 100'000,
                    .deadline = 100'000,
                    .sizes = {{30'000, 2, 12}, {50'000, 4, 24}, {100'000, 0, 0}},
                    .resizes = 1,
                    .moves = 1,
                    .gpu_seconds = 240,
                    .useful_gpu_seconds = 200},
                   {.name = "c", .submitted = 60'000, .deadline = 80'000}}};
}

RunRecord CompletedAfter(std::string policy, std::string workload, std::vector<int> seconds) {
  RunRecord run{.policy = std::move(policy), .workload = std::move(workload), .gpus = 4};
  for (const int each : seconds) {
    const std::int64_t end = std::int64_t{1000} * each;
    run.end = std::max(run.end, end);
    run.jobs.push_back({.name = Format("job-{}", run.jobs.size()),
                        .application = "ncf",
                        .started = 0,
                        .completed = end,
                        .sizes = {{0, 1, 32}, {end, 0, 0}},
                        .gpu_seconds = static_cast<double>(each),
                        .useful_gpu_seconds = static_cast<double>(each)});
  }
  return run;
}

RunRecord BusyRun(std::string policy, int jobs, double factor) {
  constexpr std::int64_t kRound = 60'000;
  RunRecord run{.policy = std::move(policy), .workload = "workload-1", .gpus = 64};
  std::vector<double> left;  // GPU rounds
  for (int at = 0; at < jobs; ++at) {
    run.jobs.push_back({.name = Format("job-{}", at),
                        .application = Format("application-{}", at % 6),
                        .submitted = at * 3 * kRound});
    left.push_back(factor * (20 + at * 7919 % 300));
  }
  std::size_t done = 0;
  for (std::int64_t now = 0; done < run.jobs.size(); now += kRound, run.end = now) {
    std::vector<std::size_t> present;
    for (std::size_t at = 0; at < run.jobs.size(); ++at) {
      if (run.jobs[at].submitted <= now && !run.jobs[at].completed) present.push_back(at);
    }
    for (std::size_t rank = 0; rank < present.size(); ++rank) {
      JobRecord& job = run.jobs[present[rank]];
      // The remainder goes round, so that sizes change in every round.
      const auto turn = static_cast<std::size_t>(now / kRound);
      const std::size_t extra = (rank + turn) % present.size() < 64 % present.size() ? 1 : 0;
      const int gpus = std::min(16, static_cast<int>(64 / present.size() + extra));
      if (job.sizes.empty() || job.sizes.back().gpus != gpus) {
        job.sizes.push_back({now, gpus, 128});
        if (job.started) ++job.resizes;
      }
      if (gpus > 0 && !job.started) job.started = now;
      job.gpu_seconds += gpus * 60.0;
      job.useful_gpu_seconds += gpus * 48.0;
      left[present[rank]] -= gpus;
      if (left[present[rank]] > 0) continue;
      job.completed = now + kRound;
      job.sizes.push_back({now + kRound, 0, 0});
      ++done;
    }
  }
  return run;
}

std::string WrongInXml(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const std::string_view entity = text.substr(at, text.substr(at).find(';') + 1);
      const auto kKnown = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      if (!std::ranges::contains(kKnown, entity)) return Format("entity at {}", at);
    }
    if (text[at] != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return "a tag without an end";
    std::string_view tag = text.substr(at + 1, end - at - 1);
    at = end;
    if (tag.starts_with('!')) continue;
    if (tag.contains('<') || std::ranges::count(tag, '"') % 2 != 0) {
      return Format("attributes of <{}>", tag);
    }
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != tag) {
      return Format("<{}> closes <{}>", tag, open.empty() ? "nothing" : open.back());
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : Format("<{}> is not closed", open.back());
}

}  // namespace pliant::simulator
