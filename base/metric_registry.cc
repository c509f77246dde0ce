#include "base/metric_registry.h"

#include <algorithm>
#include <sstream>
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

void MetricRegistry::AddCollected(const std::string& name, prometheus::MetricType type,
                                  const LabelNames& labels, const std::string& help,
                                  std::function<std::vector<prometheus::ClientMetric>()> collect) {
  Note(name, type == prometheus::MetricType::Counter ? "counter" : "gauge", labels, help);
  collected_.push_back({.family = {.name = name, .help = help, .type = type, .metric = {}},
                        .collect = std::move(collect)});
}

std::string MetricRegistry::Text() const {
  std::ostringstream text;
  const prometheus::TextSerializer serializer;
  serializer.Serialize(text, registry_.Collect());
  // One family at a time: the series of all families take many times the memory of their text.
  for (const Collected& collected : collected_) {
    std::vector<prometheus::MetricFamily> one{collected.family};
    one.front().metric = collected.collect();
    if (!one.front().metric.empty()) serializer.Serialize(text, one);
  }
  return std::move(text).str();
}

void MetricRegistry::Note(std::string name, std::string type, LabelNames labels, std::string help) {
  for (const auto& [label, value] : constant_) labels.push_back(label);
  std::ranges::sort(labels);
  families_.push_back({std::move(name), std::move(type), std::move(labels), std::move(help)});
}

void SetAtLeast(prometheus::Counter& counter, double value) {
  if (value > counter.Value()) counter.Increment(value - counter.Value());
}

prometheus::Labels JobMetricLabels(const std::string& job) {
  const std::size_t slash = job.find('/');
  if (slash == std::string::npos) return {{kJobNamespaceLabel, ""}, {kJobNameLabel, job}};
  return {{kJobNamespaceLabel, job.substr(0, slash)}, {kJobNameLabel, job.substr(slash + 1)}};
}

}  // namespace pliant
