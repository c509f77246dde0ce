#include "base/metric_registry.h"

#include <algorithm>
#include <utility>

#include <prometheus/text_serializer.h>

namespace pliant {

MetricRegistry::MetricRegistry(prometheus::Labels constant) : constant_(std::move(constant)) {}

MetricRegistry::Counters& MetricRegistry::AddCounters(const std::string& name,
                                                      const LabelNames& labels,
                                                      const std::string& help) {
  Note(name, "counter", labels, help);
  return prometheus::BuildCounter().Name(name).Help(help).Labels(constant_).Register(registry_);
}

MetricRegistry::Gauges& MetricRegistry::AddGauges(const std::string& name, const LabelNames& labels,
                                                  const std::string& help) {
  Note(name, "gauge", labels, help);
  return prometheus::BuildGauge().Name(name).Help(help).Labels(constant_).Register(registry_);
}

MetricRegistry::Histograms& MetricRegistry::AddHistograms(const std::string& name,
                                                          const LabelNames& labels,
                                                          const std::string& help) {
  Note(name, "histogram", labels, help);
  return prometheus::BuildHistogram().Name(name).Help(help).Labels(constant_).Register(registry_);
}

std::string MetricRegistry::Text() const {
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

void MetricRegistry::Note(std::string name, std::string type, LabelNames labels, std::string help) {
  for (const auto& [label, value] : constant_) labels.push_back(label);
  std::ranges::sort(labels);
  families_.push_back({std::move(name), std::move(type), std::move(labels), std::move(help)});
}

void RaiseTo(prometheus::Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

prometheus::Labels JobMetricLabels(const std::string& job) {
  const std::size_t slash = job.find('/');
  if (slash == std::string::npos) return {{kJobNamespaceLabel, ""}, {kJobNameLabel, job}};
  return {{kJobNamespaceLabel, job.substr(0, slash)}, {kJobNameLabel, job.substr(slash + 1)}};
}

}  // namespace pliant
