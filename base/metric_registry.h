#pragma once

#include <functional>
#include <string>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_type.h>
#include <prometheus/registry.h>

#include "base/metric_family.h"

namespace pliant {

// prometheus-cpp's registry, which also lists all registered families, even those without series.
// Families are registered from one thread; their series may be set from any.
class MetricRegistry {
 public:
  using Counters = prometheus::Family<prometheus::Counter>;
  using Gauges = prometheus::Family<prometheus::Gauge>;
  using Histograms = prometheus::Family<prometheus::Histogram>;
  using LabelNames = std::vector<std::string>;

  // `constant`: labels that all series have.
  explicit MetricRegistry(prometheus::Labels constant = {});

  // `labels`: the label names of each series besides the constant ones.
  Counters& AddCounters(const std::string& name, const LabelNames& labels, const std::string& help);
  Gauges& AddGauges(const std::string& name, const LabelNames& labels, const std::string& help);
  Histograms& AddHistograms(const std::string& name, const LabelNames& labels,
                            const std::string& help);

  // A family whose series `collect` makes at each scrape, with all of their labels: thousands of
  // series kept as objects need far more memory than the data that they are made from.
  void AddCollected(const std::string& name, prometheus::MetricType type, const LabelNames& labels,
                    const std::string& help,
                    std::function<std::vector<prometheus::ClientMetric>()> collect);

  const std::vector<MetricFamily>& families() const { return families_; }

  // All series in the text format that Prometheus reads.
  std::string Text() const;

 private:
  void Note(std::string name, std::string type, LabelNames labels, std::string help);

  struct Collected {
    prometheus::MetricFamily family;  // without its series
    std::function<std::vector<prometheus::ClientMetric>()> collect;
  };

  const prometheus::Labels constant_;
  prometheus::Registry registry_;
  std::vector<Collected> collected_;
  std::vector<MetricFamily> families_;
};

// Raises a counter to a total counted elsewhere; never lowers it.
void SetAtLeast(prometheus::Counter& counter, double value);

// The labels that name a job in the series of all programs; a job is given as "<namespace>/<name>".
// Not "job" and "namespace": most configurations use those for the scraped target.
inline constexpr const char* kJobNamespaceLabel = "job_namespace";
inline constexpr const char* kJobNameLabel = "job_name";
prometheus::Labels JobMetricLabels(const std::string& job);

}  // namespace pliant
