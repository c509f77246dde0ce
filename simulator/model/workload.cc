#include "simulator/model/workload.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::array<std::string_view, 5> kColumns = {"name", "time", "application", "num_replicas",
                                                      "batch_size"};
constexpr std::int64_t kMaxSeconds = 1'000'000'000;  // 31 years
constexpr std::int64_t kMaxGpus = 65'536;

Result<JobSpec> ReadJob(const CsvTable& table, std::size_t row, const Profiles& profiles) {
  JobSpec job;
  ASSIGN_OR_RETURN(job.name, table.Name(row, 0));
  ASSIGN_OR_RETURN(job.submitted_seconds, table.Whole(row, 1, 0, kMaxSeconds));
  const std::optional<std::size_t> application = profiles.Find(table.Text(row, 2));
  if (!application) {
    return table.Wrong(row, Format("'application' is {}, which has no profile; use one of {}",
                                   Shown(table.Text(row, 2)), profiles.Names()));
  }
  job.application = *application;
  const Profile& profile = profiles[job.application];
  ASSIGN_OR_RETURN(const std::int64_t batch,
                   table.Whole(row, 4, profile.min_batch(), profile.max_batch()));
  ASSIGN_OR_RETURN(const std::int64_t gpus, table.Whole(row, 3, 1, kMaxGpus));
  if (batch / gpus < profile.min_local()) {
    return table.Wrong(row, Format("'num_replicas' is {}: fewer than {} of {} samples for each; "
                                   "ask for at most {}",
                                   gpus, profile.min_local(), batch, batch / profile.min_local()));
  }
  job.batch = static_cast<int>(batch);
  job.gpus = static_cast<int>(gpus);
  return job;
}

}  // namespace

Result<std::vector<JobSpec>> ReadWorkload(const std::filesystem::path& path,
                                          const Profiles& profiles) {
  ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path, kColumns));
  std::vector<JobSpec> jobs;
  std::set<std::string> names;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ASSIGN_OR_RETURN(JobSpec job, ReadJob(table, row, profiles));
    if (!names.insert(job.name).second) {
      return table.Wrong(row, Format("an earlier job is named {}; rename one", job.name));
    }
    jobs.push_back(std::move(job));
  }
  std::ranges::stable_sort(jobs, {}, &JobSpec::submitted_seconds);
  return jobs;
}

}  // namespace pliant::simulator
