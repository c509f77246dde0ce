#include "simulator/report/json.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "simulator/report/gpu_time.h"

namespace pliant::simulator {
namespace {

using nlohmann::json;

template <typename T>
json OptionalJson(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json ValuesJson(const FigureValues& values) {
  json object = json::object();
  const std::span<const FigureKind> kinds = FigureKinds();
  for (std::size_t at = 0; at < kinds.size(); ++at) {
    object[std::string(kinds[at].key)] = OptionalJson(values[at]);
  }
  return object;
}

json ValuesJson(const std::optional<Distribution>& distribution) {
  if (!distribution) return {};
  return {{"count", distribution->count}, {"mean", distribution->mean}, {"p50", distribution->p50},
          {"p90", distribution->p90},     {"p99", distribution->p99},   {"max", distribution->max}};
}

json DefinitionsJson() {
  json list = json::array();
  for (const FigureKind& kind : FigureKinds()) {
    list.push_back({{"figure", kind.key}, {"label", kind.label}, {"definition", kind.definition}});
  }
  return list;
}

json PairedJson(const std::vector<PairedFigure>& all) {
  json list = json::array();
  for (const PairedFigure& paired : all) {
    list.push_back({{"figure", FigureKinds()[paired.kind].key},
                    {"mean_difference", OptionalJson(paired.mean)},
                    {"differences", paired.differences},
                    {"better", paired.signs.better},
                    {"worse", paired.signs.worse},
                    {"ties", paired.signs.ties},
                    {"p", paired.signs.p},
                    {"sentence", Sentence(paired.signs)}});
  }
  return list;
}

json JobJson(const JobRecord& job, const JobFigures& figures) {
  json sizes = json::array();
  for (const SizeAt& size : job.sizes) sizes.push_back({size.at, size.gpus, size.batch});
  return {{"name", job.name},
          {"application", job.application},
          {"queue", job.queue},
          {"submitted_ms", job.submitted},
          {"started_ms", OptionalJson(job.started)},
          {"completed_ms", OptionalJson(job.completed)},
          {"deadline_ms", OptionalJson(job.deadline)},
          {"resizes", job.resizes},
          {"moves", job.moves},
          {"gpu_seconds", job.gpu_seconds},
          {"useful_gpu_seconds", job.useful_gpu_seconds},
          {"lost_seconds", job.lost_seconds},
          {"completion_seconds", OptionalJson(figures.completion_seconds)},
          {"queueing_seconds", OptionalJson(figures.queueing_seconds)},
          {"mean_present", figures.mean_present},
          {"share_gpus", figures.share_gpus},
          {"rho", OptionalJson(figures.rho)},
          {"missed_deadline", figures.missed_deadline},
          {"at_ms_gpus_batch", std::move(sizes)}};
}

json RunJson(const MeasuredRun& run) {
  json sizes = json::array();
  for (const auto& [gpus, seconds] : GpuSecondsBySize(run.record)) {
    sizes.push_back({{"gpus", gpus}, {"gpu_seconds", seconds}});
  }
  json jobs = json::array();
  for (std::size_t at = 0; at < run.jobs.size(); ++at) {
    jobs.push_back(JobJson(run.record.jobs[at], run.jobs[at]));
  }
  return {{"workload", run.record.workload},
          {"gpus", run.record.gpus},
          {"end_ms", run.record.end},
          {"plans", run.record.plans},
          {"figures", ValuesJson(ValuesOf(run.figures))},
          {"gpu_seconds_by_size", std::move(sizes)},
          {"jobs", std::move(jobs)}};
}

json PolicyJson(const PolicyReport& policy) {
  json runs = json::array();
  for (const MeasuredRun& run : policy.runs) runs.push_back(RunJson(run));
  return {{"policy", policy.policy},
          {"figures", ValuesJson(policy.figures)},
          {"pooled_completion_seconds", ValuesJson(policy.pooled_completion_seconds)},
          {"pooled_rho", ValuesJson(policy.pooled_rho)},
          {"against_first", PairedJson(policy.against_first)},
          {"runs", std::move(runs)}};
}

}  // namespace

std::string WriteJson(const Report& report) {
  json policies = json::array();
  for (const PolicyReport& policy : report.policies) policies.push_back(PolicyJson(policy));
  const json all = {{"version", kReportVersion},
                    {"title", report.title},
                    {"method", kMethod},
                    {"definitions", DefinitionsJson()},
                    {"workloads", report.workloads},
                    {"policies", std::move(policies)}};
  // On one line: most of the file would be indentation.
  return all.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace pliant::simulator
