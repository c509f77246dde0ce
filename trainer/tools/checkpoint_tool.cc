#include "trainer/tools/checkpoint_tool.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/file_store.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace pliant {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kFine = 0;
constexpr int kTrouble = 1;
constexpr int kWrongUsage = 2;

// One checkpoint, or the final model, as shown to the user.
struct Found {
  fs::path job;  // its folder
  StoredCheckpoint stored;
  std::optional<Manifest> manifest;
  std::string state;    // "complete", "verified", "incomplete", "damaged"
  std::string problem;  // set if it is damaged

  bool is_final() const { return stored.name == kFinalDirectory; }
};

bool IsCheckpointName(const std::string& name) {
  return name.starts_with(kStepPrefix) || name == kFinalDirectory;
}

// Reads only the manifest and the list of files, not their bytes.
Found Look(CheckpointStore& store, const fs::path& job, StoredCheckpoint stored) {
  Found found{.job = job, .stored = std::move(stored), .state = "incomplete"};
  if (!found.stored.has_manifest()) return found;
  Result<Manifest> manifest = ReadManifest(store, found.stored);
  found.state = "damaged";
  if (!manifest) {
    found.problem = manifest.error().message;
  } else if (!AllPresent(found.stored, *manifest)) {
    found.problem = "a file is missing or cut";
  } else {
    found.state = "complete";
  }
  if (manifest) found.manifest = *std::move(manifest);
  return found;
}

void Verify(Found& found) {
  if (found.state != "complete") return;
  FileStore store(found.job);
  const Result<StateCopy> state = LoadVerified(store, found.stored, *found.manifest);
  found.state = state ? "verified" : "damaged";
  if (!state) found.problem = state.error().message;
}

// The content of a job's folder: the final model, then the checkpoints, newest first.
Result<std::vector<Found>> LookInJob(const fs::path& job) {
  FileStore store(job);
  std::vector<Found> all;
  ASSIGN_OR_RETURN(StoredCheckpoint final, FindDirectory(store, kFinalDirectory));
  if (!final.files.empty()) all.push_back(Look(store, job, std::move(final)));
  ASSIGN_OR_RETURN(std::vector<StoredCheckpoint> steps, ListSteps(store));
  for (StoredCheckpoint& stored : steps) all.push_back(Look(store, job, std::move(stored)));
  return all;
}

// `folder`: the folder of one checkpoint or of a job, or a volume with the folders of several jobs.
Result<std::vector<Found>> LookInto(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return Fail(ErrorCode::kNotFound, Format("{}: no such folder", folder.string()));
  }
  const fs::path path = fs::canonical(folder, error);
  if (const std::string name = path.filename().string(); IsCheckpointName(name)) {
    FileStore store(path.parent_path());
    ASSIGN_OR_RETURN(StoredCheckpoint stored, FindDirectory(store, name));
    return std::vector{Look(store, path.parent_path(), std::move(stored))};
  }
  ASSIGN_OR_RETURN(std::vector<Found> all, LookInJob(path));
  if (!all.empty()) return all;
  std::vector<fs::path> jobs;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_directory()) jobs.push_back(entry->path());
  }
  std::ranges::sort(jobs);
  for (const fs::path& job : jobs) {
    ASSIGN_OR_RETURN(std::vector<Found> of_job, LookInJob(job));
    std::ranges::move(of_job, std::back_inserter(all));
  }
  if (all.empty()) {
    return Fail(ErrorCode::kNotFound,
                Format("{}: contains no checkpoint and no job folder with one", path.string()));
  }
  return all;
}

std::string SizeText(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return unit == 0 ? Format("{} B", bytes) : Format("{:.1f} {}", size, kUnits[unit]);
}

Json ToJson(const Found& found) {
  Json json = {{"job", found.job.filename().string()},
               {"path", (found.job / found.stored.name).string()},
               {"final", found.is_final()},
               {"bytes", found.stored.bytes()},
               {"state", found.state}};
  if (!found.problem.empty()) json["problem"] = found.problem;
  if (found.manifest) {
    const Manifest& manifest = *found.manifest;
    json.update({{"step", manifest.position.step},
                 {"epoch", manifest.position.epoch},
                 {"membership", ToString(manifest.position.membership)},
                 {"seed", manifest.job.seed},
                 {"globalBatchSize", manifest.job.global_batch_size},
                 {"logicalShards", manifest.job.logical_shards},
                 {"framework", manifest.framework},
                 {"parametersSha256", manifest.parameters_sha256}});
    if (const BaseModel& base = manifest.job.base; !base.sha256.empty()) {
      json["base"] = {{"sha256", base.sha256}, {"name", base.name}};
    }
  }
  return json;
}

void PrintTable(const std::vector<Found>& all, std::ostream& out) {
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "CHECKPOINT", "STEP", "EPOCH", "SIZE", "PARAMETERS", "STATE"}};
  for (const Found& found : all) {
    const Manifest* const manifest = found.manifest ? &*found.manifest : nullptr;
    rows.push_back({found.job.filename().string(), found.stored.name,
                    manifest ? std::to_string(manifest->position.step) : "-",
                    manifest ? std::to_string(manifest->position.epoch) : "-",
                    SizeText(found.stored.bytes()),
                    manifest ? manifest->parameters_sha256.substr(0, 12) : "-",
                    found.problem.empty() ? found.state : found.state + ": " + found.problem});
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? Format("{:<{}}  ", row[i], widths[i]) : row[i];
    out << line << '\n';
  }
}

void Print(const std::vector<Found>& all, bool as_json, std::ostream& out) {
  if (!as_json) return PrintTable(all, out);
  Json json = Json::array();
  for (const Found& found : all) json.push_back(ToJson(found));
  out << json.dump(2) << '\n';
}

bool IsDamaged(const Found& found) { return found.state == "damaged"; }

Result<int> List(const fs::path& folder, bool as_json, std::ostream& out) {
  ASSIGN_OR_RETURN(const std::vector<Found> all, LookInto(folder));
  Print(all, as_json, out);
  return kFine;
}

Result<int> VerifyAll(const fs::path& folder, bool as_json, std::ostream& out) {
  ASSIGN_OR_RETURN(std::vector<Found> all, LookInto(folder));
  for (Found& found : all) Verify(found);
  Print(all, as_json, out);
  const bool some = std::ranges::any_of(all, [](const Found& f) { return f.state == "verified"; });
  return some && std::ranges::none_of(all, IsDamaged) ? kFine : kTrouble;
}

// Exports the final model, else the newest checkpoint; one that does not verify is skipped.
Result<int> Export(const fs::path& folder, const fs::path& file, bool as_json, std::ostream& out,
                   std::ostream& err) {
  ASSIGN_OR_RETURN(const std::vector<Found> all, LookInto(folder));
  for (const Found& found : all) {
    if (found.job != all.front().job) {
      return Invalid(Format("{}: contains the checkpoints of several jobs: name the folder of one",
                            folder.string()));
    }
  }
  for (const Found& found : all) {
    FileStore from(found.job);
    const Result<StateCopy> state = found.state == "complete"
                                        ? LoadVerified(from, found.stored, *found.manifest)
                                        : Result<StateCopy>(Fail(ErrorCode::kCorrupt, found.state));
    if (!state) {
      err << found.stored.name
          << " is passed over: " << (found.problem.empty() ? state.error().message : found.problem)
          << '\n';
      continue;
    }
    const BaseModel& base = found.manifest->job.base;
    if (!found.is_final() && !base.sha256.empty()) {
      err << Format(
          "{} has only what is trained: its base, {} ({}), is frozen, and each learner has it\n",
          found.stored.name, base.name.empty() ? "without a name" : base.name, base.sha256);
    }
    const fs::path to = fs::absolute(file);
    FileStore store(to.parent_path());
    RETURN_IF_ERROR(WriteModel(store, to.filename().string(), state->view()));
    if (as_json) {
      Json json = ToJson(found);
      json["state"] = "verified";
      json["exportedTo"] = to.string();
      out << json.dump(2) << '\n';
    } else {
      out << Format("{} (step {}) exported to {}\n", found.stored.name,
                    found.manifest->position.step, file.string());
    }
    return kFine;
  }
  return Fail(ErrorCode::kCorrupt, "there is no checkpoint that verifies");
}

}  // namespace

int RunCheckpointTool(int argc, const char* const* argv, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "Lists, verifies and exports the checkpoints of jobs. FOLDER is a checkpoint volume, the "
      "folder of a job on it (named by the job's uid), or that of one checkpoint.",
      "pliant-checkpoint");
  app.footer(
      "Exit codes: 0 success; 1 something is missing, damaged, or cannot be read or written; "
      "2 wrong usage.");
  app.require_subcommand(1);
  fs::path folder;
  fs::path file;
  bool as_json = false;
  const auto command = [&](const char* name, const char* what) {
    CLI::App* const added = app.add_subcommand(name, what);
    added->add_option("FOLDER", folder, "the folder to read")->required();
    added->add_flag("--json", as_json, "print JSON, for programs");
    return added;
  };
  const CLI::App* const list = command("list", "Lists the checkpoints without reading their data");
  const CLI::App* const verify = command(
      "verify", "Reads everything and compares all checksums; exits with 1 if one is damaged");
  CLI::App* const exporting =
      command("export",
              "Writes only the model, from the final model or the newest checkpoint that verifies");
  exporting->add_option("FILE", file, "the safetensors file to write")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, out, err) == 0 ? kFine : kWrongUsage;
  }
  const Result<int> done = list->parsed()     ? List(folder, as_json, out)
                           : verify->parsed() ? VerifyAll(folder, as_json, out)
                                              : Export(folder, file, as_json, out, err);
  if (done) return *done;
  err << done.error().message << '\n';
  return kTrouble;
}

}  // namespace pliant
