#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "simulator/model/run_record.h"
#include "simulator/report/distribution.h"

namespace pliant::simulator {

// Seconds that a job of the workload (its index) would take alone on this number of GPUs, with its
// submitted batch. Absent: unknown.
using IsolatedSeconds = std::function<std::optional<double>(std::size_t job, int gpus)>;

struct JobFigures {
  std::optional<double> completion_seconds;  // from submission; absent: it did not complete
  std::optional<double> queueing_seconds;    // from submission to its first step; absent: none
  // Finish-time fairness: the completion time divided by the time that the job would have taken
  // alone on its share of the cluster, with its submitted batch. The share is max(1, round(G / N))
  // GPUs: G are those of the cluster, N is the mean number of jobs present over the life of the
  // job, itself included. A job is present from its submission to its completion, whether it holds
  // GPUs or waits. Other authors take other shares, so compare rho only within a report.
  // Absent: the job did not complete, or its time alone is unknown.
  std::optional<double> rho;
  double mean_present = 0;  // N; 0 if the job did not complete
  int share_gpus = 0;       // 0 if the job did not complete
  bool missed_deadline = false;
  bool operator==(const JobFigures&) const = default;
};

// Figures of one run. Its span is from the first submission to the end of the run.
struct Figures {
  std::size_t jobs = 0;
  std::size_t started = 0;
  std::size_t completed = 0;
  std::optional<Distribution> completion_seconds;  // of the jobs that completed
  std::optional<Distribution> rho;                 // of the jobs that have one
  // From the first submission to the last completion; absent if a job did not complete.
  std::optional<double> makespan_seconds;
  // Shares of the GPU time of the cluster over the span; absent if there is none.
  std::optional<double> allocated_share;
  std::optional<double> useful_share;
  std::optional<double> queueing_seconds;  // mean of the jobs that started
  std::optional<double> resizes_per_job;   // absent if there are no jobs
  std::optional<double> moves_per_job;
  std::size_t deadlines = 0;  // jobs that have one
  std::size_t missed_deadlines =
      0;                    // completed after it, or not at all when the run ended after it
  double lost_seconds = 0;  // of all jobs
  bool operator==(const Figures&) const = default;
};

// By job. `isolated` may be empty: then there is no rho.
std::vector<JobFigures> FiguresOfJobs(const RunRecord& run, const IsolatedSeconds& isolated);

// `jobs`: of the same run.
Figures FiguresOf(const RunRecord& run, const std::vector<JobFigures>& jobs);

}  // namespace pliant::simulator
