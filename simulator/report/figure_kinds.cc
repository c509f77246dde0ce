#include "simulator/report/figure_kinds.h"

#include <array>
#include <cstddef>

#include "simulator/report/markup.h"

namespace pliant::simulator {
namespace {

using Value = std::optional<double>;

template <double Distribution::* member>
Value Completion(const Figures& figures) {
  return figures.completion_seconds ? Value(*figures.completion_seconds.*member) : Value();
}

template <double Distribution::* member>
Value Rho(const Figures& figures) {
  return figures.rho ? Value(*figures.rho.*member) : Value();
}

template <Value Figures::* member>
Value Own(const Figures& figures) {
  return figures.*member;
}

template <std::size_t Figures::* member>
Value Count(const Figures& figures) {
  return static_cast<double>(figures.*member);
}

using enum Better;
using enum OverWorkloads;

constexpr auto kKinds = std::to_array<FigureKind>({
    {"jobs", "JOBS", "jobs", "", 0, kNeither, kTotal, "Jobs of the workload.",
     Count<&Figures::jobs>},
    {"jobs_started", "STARTED", "jobs that started", "", 0, kHigher, kTotal,
     "Jobs that trained a first step before the run ended.", Count<&Figures::started>},
    {"jobs_completed", "DONE", "jobs that completed", "", 0, kHigher, kTotal,
     "Jobs that trained to their end before the run ended.", Count<&Figures::completed>},
    {"completion_mean_seconds", "MEAN", "completion time, mean", "s", 1, kLower, kMean,
     "The completion time of a job is the time from its submission to its completion, waiting "
     "included. Only jobs that completed count.",
     Completion<&Distribution::mean>},
    {"completion_p50_seconds", "P50", "completion time, p50", "s", 1, kLower, kMean,
     "Half of the completed jobs took at most this completion time.",
     Completion<&Distribution::p50>},
    {"completion_p90_seconds", "P90", "completion time, p90", "s", 1, kLower, kMean,
     "90 % of the completed jobs took at most this completion time.",
     Completion<&Distribution::p90>},
    {"completion_p99_seconds", "P99", "completion time, p99", "s", 1, kLower, kMean,
     "99 % of the completed jobs took at most this completion time.",
     Completion<&Distribution::p99>},
    {"makespan_seconds", "MAKESPAN", "makespan", "s", 1, kLower, kMean,
     "The time from the first submission to the last completion. It is absent if a job did not "
     "complete.",
     Own<&Figures::makespan_seconds>},
    {"queueing_mean_seconds", "QUEUED", "queueing time, mean", "s", 1, kLower, kMean,
     "The time from the submission of a job to its first step. Only jobs that started count.",
     Own<&Figures::queueing_seconds>},
    {"allocated_share", "ALLOC %", "allocated GPU time", "%", 1, kNeither, kMean,
     "GPU time that jobs held, as a share of the GPU time of the cluster from the first submission "
     "to the end of the run.",
     Own<&Figures::allocated_share>},
    {"useful_share", "USEFUL %", "useful GPU time", "%", 1, kHigher, kMean,
     "The same, each GPU second weighted by the speed of the job divided by the speed that the "
     "same "
     "number of learners would have if they did not slow each other down.",
     Own<&Figures::useful_share>},
    {"resizes_per_job", "RESIZES", "resizes per job", "", 2, kNeither, kMean,
     "Changes of the GPUs of a job while it trained.", Own<&Figures::resizes_per_job>},
    {"moves_per_job", "MOVES", "moves per job", "", 2, kNeither, kMean,
     "Resizes in which a job left all of its nodes.", Own<&Figures::moves_per_job>},
    {"deadlines", "DEADLINES", "jobs with a deadline", "", 0, kNeither, kTotal,
     "Jobs that were submitted with a deadline.", Count<&Figures::deadlines>},
    {"missed_deadlines", "MISSED", "missed deadlines", "", 0, kLower, kTotal,
     "Jobs that completed after their deadline, or had not completed when the run ended after it.",
     Count<&Figures::missed_deadlines>},
    {"lost_seconds", "LOST s", "lost training time", "s", 1, kLower, kTotal,
     "Training time of all jobs that failures undid.",
     [](const Figures& figures) { return Value(figures.lost_seconds); }},
    {"rho_mean", "RHO MEAN", "rho, mean", "", 2, kLower, kMean,
     "rho is finish-time fairness: the completion time of a job divided by the time that it would "
     "have "
     "taken alone on max(1, round(G / N)) GPUs with its submitted batch. G is the number of GPUs "
     "of "
     "the cluster. N is the mean number of jobs present over the life of the job, itself included; "
     "a "
     "job is present from its submission to its completion. At most 1 is fair. Definitions of rho "
     "differ among publications.",
     Rho<&Distribution::mean>},
    {"rho_p99", "RHO P99", "rho, p99", "", 2, kLower, kMean,
     "99 % of the jobs that have a rho have at most this one.", Rho<&Distribution::p99>},
    {"rho_max", "RHO MAX", "rho, max", "", 2, kLower, kMean,
     "The rho of the job that was treated worst.", Rho<&Distribution::max>},
});

Value InUnit(const FigureKind& kind, Value value) {
  return value && kind.unit == "%" ? Value(100 * *value) : value;
}

}  // namespace

std::span<const FigureKind> FigureKinds() { return kKinds; }

FigureValues ValuesOf(const Figures& figures) {
  FigureValues values;
  for (const FigureKind& kind : kKinds) values.push_back(kind.of(figures));
  return values;
}

std::string Shown(const FigureKind& kind, std::optional<double> value) {
  const Value shown = InUnit(kind, value);
  return shown ? Fixed(*shown, kind.digits) : "-";
}

std::string ShownDifference(const FigureKind& kind, std::optional<double> value) {
  const std::string shown = Shown(kind, value);
  return value && *value > 0 && shown.front() != '-' ? "+" + shown : shown;
}

}  // namespace pliant::simulator
