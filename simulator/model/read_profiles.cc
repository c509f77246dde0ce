#include "simulator/model/read_profiles.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "base/format.h"
#include "simulator/model/csv.h"

namespace pliant::simulator {
namespace {

constexpr std::int64_t kMaxEpochs = 100'000;
constexpr std::int64_t kMaxBatch = 10'000'000;
constexpr std::int64_t kMaxNodes = 4096;
constexpr std::int64_t kMaxLearners = 65'536;
constexpr std::size_t kMaxPlacementNodes = 64;
// These keep all that is computed from them finite.
constexpr double kMinStepSeconds = 1e-9;
constexpr double kMaxStepSeconds = 1e6;
constexpr double kMaxValue = 1e30;

using Extras = std::map<std::string, std::vector<MeasuredSize>, std::less<>>;

// A row of applications.csv.
struct Application {
  std::string name;
  int epochs = 1;
  std::vector<int> batches;  // rising
  int max_local = 0;         // 0: the largest in placements.csv
  std::optional<int> max_gpus;
};

Result<int> Int(const CsvTable& table, std::size_t row, std::size_t column, std::int64_t min,
                std::int64_t max) {
  ASSIGN_OR_RETURN(const std::int64_t value, table.Whole(row, column, min, max));
  return static_cast<int>(value);
}

// "12 24 48"
Result<std::vector<int>> Batches(const CsvTable& table, std::size_t row, std::size_t column) {
  std::vector<int> batches;
  std::string_view left = table.Text(row, column);
  while (!left.empty()) {
    const std::string_view word = left.substr(0, left.find(' '));
    int batch = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), batch);
    if (error != std::errc() || end != word.data() + word.size() || batch < 1 ||
        batch > kMaxBatch || (!batches.empty() && batch <= batches.back())) {
      batches.clear();
      break;
    }
    batches.push_back(batch);
    left.remove_prefix(std::min(word.size() + 1, left.size()));
  }
  if (batches.empty()) {
    return table.Wrong(row, Format("'batches' is {}; write rising batches, for example 12 24 48",
                                   Shown(table.Text(row, column))));
  }
  return batches;
}

Result<std::vector<Application>> ReadApplications(const CsvTable& table) {
  std::vector<Application> applications;
  std::set<std::string> names;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Application each;
    ASSIGN_OR_RETURN(each.name, table.Name(row, 0));
    if (each.name.starts_with('.')) {
      return table.Wrong(row, Format("'application' is {}; begin it with a letter", each.name));
    }
    if (!names.insert(each.name).second) {
      return table.Wrong(row,
                         Format("the application {} stands there twice; remove one", each.name));
    }
    ASSIGN_OR_RETURN(each.epochs, Int(table, row, 1, 1, kMaxEpochs));
    ASSIGN_OR_RETURN(each.batches, Batches(table, row, 2));
    if (!table.Text(row, 3).empty()) {
      ASSIGN_OR_RETURN(each.max_local, Int(table, row, 3, 1, kMaxBatch));
    }
    if (!table.Text(row, 4).empty()) {
      ASSIGN_OR_RETURN(each.max_gpus, Int(table, row, 4, 1, kMaxLearners));
    }
    applications.push_back(std::move(each));
  }
  return applications;
}

Result<StepTime> ReadStepTime(const CsvTable& table, std::size_t row, std::size_t column) {
  ASSIGN_OR_RETURN(const double step, table.Number(row, column, kMinStepSeconds, kMaxStepSeconds));
  ASSIGN_OR_RETURN(const double sync, table.Number(row, column + 1, 0, kMaxStepSeconds));
  if (sync > step) {
    return table.Wrong(row, Format("'sync_time' {} exceeds 'step_time' {}; it is a part of it",
                                   table.Text(row, column + 1), table.Text(row, column)));
  }
  return StepTime{.step = step, .sync = sync};
}

// One digit a node: 124.
Result<Placement> ReadPlacement(const CsvTable& table, std::size_t row) {
  const std::string_view text = table.Text(row, 0);
  Placement placement;
  for (const char digit : text) {
    if (digit < '1' || digit > '9' || placement.size() == kMaxPlacementNodes) {
      return table.Wrong(row, Format("'placement' is {}; write the learners of each node as one "
                                     "digit, at most {} nodes",
                                     Shown(text), kMaxPlacementNodes));
    }
    placement.push_back(digit - '0');
  }
  if (placement.empty()) return table.Wrong(row, "'placement' is empty; write one, for example 4");
  if (placement != LeastRotation(placement)) {
    return table.Wrong(
        row, Format("'placement' {} is not the least of its rotations; write that", text));
  }
  return placement;
}

Result<std::vector<MeasuredPlacement>> ReadPlacements(const CsvTable& table) {
  std::map<Placement, std::vector<LocalPoint>> found;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ASSIGN_OR_RETURN(const Placement placement, ReadPlacement(table, row));
    ASSIGN_OR_RETURN(const int local, Int(table, row, 1, 1, kMaxBatch));
    ASSIGN_OR_RETURN(const StepTime time, ReadStepTime(table, row, 2));
    std::vector<LocalPoint>& points = found[placement];
    if (!points.empty() && local <= points.back().local) {
      return table.Wrong(row, Format("'local_bsz' does not rise: {} after {} of the same "
                                     "placement; sort the rows, and remove repeated ones",
                                     local, points.back().local));
    }
    points.push_back({.local = local, .time = time});
  }
  std::vector<MeasuredPlacement> placements;
  for (auto& [placement, points] : found) {
    placements.push_back({.placement = placement, .points = std::move(points)});
  }
  return placements;
}

// The columns num_nodes,num_replicas,local_bsz,step_time,sync_time from `column`.
Result<MeasuredSize> ReadSize(const CsvTable& table, std::size_t row, std::size_t column) {
  MeasuredSize size;
  ASSIGN_OR_RETURN(size.nodes, Int(table, row, column, 1, kMaxNodes));
  ASSIGN_OR_RETURN(size.learners, Int(table, row, column + 1, size.nodes, kMaxLearners));
  ASSIGN_OR_RETURN(size.local, Int(table, row, column + 2, 1, kMaxBatch));
  ASSIGN_OR_RETURN(size.time, ReadStepTime(table, row, column + 3));
  return size;
}

Status RefuseRepeated(const CsvTable& table, std::size_t row, const MeasuredSize& size,
                      std::set<std::tuple<int, int, int>>& seen) {
  if (seen.emplace(size.nodes, size.learners, size.local).second) return {};
  return table.Wrong(row, "an earlier row has the same nodes, replicas and batch; remove one");
}

Result<std::vector<MeasuredSize>> ReadScalability(const CsvTable& table) {
  std::vector<MeasuredSize> sizes;
  std::set<std::tuple<int, int, int>> seen;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ASSIGN_OR_RETURN(const MeasuredSize size, ReadSize(table, row, 0));
    RETURN_IF_ERROR(RefuseRepeated(table, row, size, seen));
    sizes.push_back(size);
  }
  return sizes;
}

Result<Extras> ReadExtras(const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 6> kColumns = {
      "application", "num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"};
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Extras{};
  ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Read(path, kColumns));
  Extras extras;
  std::map<std::string, std::set<std::tuple<int, int, int>>> seen;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    ASSIGN_OR_RETURN(const std::string application, table.Name(row, 0));
    ASSIGN_OR_RETURN(const MeasuredSize size, ReadSize(table, row, 1));
    RETURN_IF_ERROR(RefuseRepeated(table, row, size, seen[application]));
    extras[application].push_back(size);
  }
  return extras;
}

Result<std::vector<EpochRow>> ReadEpochs(const CsvTable& table, int epochs) {
  std::vector<EpochRow> found;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    // The column `metric` is not used.
    EpochRow epoch;
    ASSIGN_OR_RETURN(epoch.progress, table.Number(row, 0, 0, kMaxValue));
    ASSIGN_OR_RETURN(epoch.iterations, table.Number(row, 1, 0, kMaxValue));
    ASSIGN_OR_RETURN(epoch.gradients.square, table.Number(row, 3, 0, kMaxValue));
    ASSIGN_OR_RETURN(epoch.gradients.variance, table.Number(row, 4, 0, kMaxValue));
    const EpochRow before = found.empty() ? EpochRow{} : found.back();
    if (epoch.progress <= before.progress || epoch.iterations <= before.iterations) {
      return table.Wrong(row,
                         "'progress' or 'iteration' does not rise; both count from the start "
                         "of the training, so each row exceeds the one before");
    }
    found.push_back(epoch);
  }
  if (found.size() < static_cast<std::size_t>(epochs)) {
    return table.Wrong(table.rows() - 1,
                       Format("the table ends after {} epochs of {}; add rows, or lower 'epochs' "
                              "in applications.csv",
                              found.size(), epochs));
  }
  return found;
}

Result<std::vector<Validation>> ReadValidations(const std::filesystem::path& folder,
                                                const Application& application) {
  static constexpr std::array<std::string_view, 5> kColumns = {"progress", "iteration", "metric",
                                                               "grad_sqr", "grad_var"};
  std::vector<Validation> validations;
  for (const int batch : application.batches) {
    const std::filesystem::path path = folder / Format("validation-{}.csv", batch);
    auto table = CsvTable::Read(path, kColumns);
    if (!table && table.error().code == ErrorCode::kNotFound) {
      return Invalid(
          Format("{} is missing; add it, or remove {} from 'batches' of {} in "
                 "applications.csv",
                 path.string(), batch, application.name));
    }
    if (!table) return std::unexpected(std::move(table).error());
    ASSIGN_OR_RETURN(auto epochs, ReadEpochs(*table, application.epochs));
    validations.push_back({.batch = batch, .epochs = std::move(epochs)});
  }
  return validations;
}

Result<Profile> ReadProfile(const std::filesystem::path& folder, const CsvTable& list,
                            std::size_t row, const Application& application,
                            std::vector<MeasuredSize> extra) {
  static constexpr std::array<std::string_view, 4> kPlacements = {"placement", "local_bsz",
                                                                  "step_time", "sync_time"};
  static constexpr std::array<std::string_view, 5> kScalability = {
      "num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"};
  ProfileTables tables;
  tables.application = application.name;
  tables.epochs = application.epochs;
  tables.max_gpus = application.max_gpus;
  ASSIGN_OR_RETURN(const CsvTable placements,
                   CsvTable::Read(folder / "placements.csv", kPlacements));
  ASSIGN_OR_RETURN(tables.placements, ReadPlacements(placements));
  tables.min_local = tables.placements.front().points.front().local;
  for (const MeasuredPlacement& each : tables.placements) {
    tables.min_local = std::min(tables.min_local, each.points.front().local);
    tables.max_local = std::max(tables.max_local, each.points.back().local);
  }
  if (application.max_local > tables.max_local ||
      (application.max_local != 0 && application.max_local < tables.min_local)) {
    return list.Wrong(
        row, Format("'max_local_batch' is {}, and {}/placements.csv has {} to {}; "
                    "choose one of these, or none",
                    application.max_local, application.name, tables.min_local, tables.max_local));
  }
  if (application.batches.front() < tables.min_local) {
    return list.Wrong(row, Format("the smallest of 'batches' is {}, and {}/placements.csv begins "
                                  "at {} samples a learner; remove smaller batches",
                                  application.batches.front(), application.name, tables.min_local));
  }
  if (application.max_local != 0) tables.max_local = application.max_local;
  ASSIGN_OR_RETURN(const CsvTable scalability,
                   CsvTable::Read(folder / "scalability.csv", kScalability));
  ASSIGN_OR_RETURN(tables.scalability, ReadScalability(scalability));
  tables.extra = std::move(extra);
  ASSIGN_OR_RETURN(tables.validations, ReadValidations(folder, application));
  return Profile(std::move(tables));
}

}  // namespace

Result<Profiles> ReadProfiles(const std::filesystem::path& directory) {
  static constexpr std::array<std::string_view, 5> kColumns = {"application", "epochs", "batches",
                                                               "max_local_batch", "max_gpus"};
  ASSIGN_OR_RETURN(const CsvTable list, CsvTable::Read(directory / "applications.csv", kColumns));
  ASSIGN_OR_RETURN(const std::vector<Application> applications, ReadApplications(list));
  ASSIGN_OR_RETURN(Extras extras, ReadExtras(directory / "extra_points.csv"));
  std::vector<Profile> profiles;
  for (std::size_t row = 0; row < applications.size(); ++row) {
    const Application& each = applications[row];
    ASSIGN_OR_RETURN(Profile profile, ReadProfile(directory / each.name, list, row, each,
                                                  std::move(extras[each.name])));
    profiles.push_back(std::move(profile));
    extras.erase(each.name);
  }
  if (!extras.empty()) {
    return Invalid(
        Format("{}: the application {} is not in applications.csv; add it there, or "
               "remove its points",
               (directory / "extra_points.csv").string(), extras.begin()->first));
  }
  return Profiles(std::move(profiles));
}

}  // namespace pliant::simulator
