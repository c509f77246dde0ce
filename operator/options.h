#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/listen_address.h"
#include "base/log.h"
#include "operator/api/elastic_training_job.h"

namespace pliant {

struct OperatorOptions {
  std::string ns;        // where its lease, its keys and its pod are
  std::string identity;  // of its pod
  std::string coordinator_image;
  std::vector<std::string> coordinator_pull_secrets;
  std::string coordinator_template;           // JSON, a part of a PodTemplateSpec; ""
  std::vector<std::string> watch_namespaces;  // empty: all
  ListenAddress probe_address;
  ListenAddress metrics_address;
  bool metrics_authentication = false;
  std::string metrics_tls_dir;  // "": a certificate that is made at start
  std::uint16_t debug_port = 6060;
  std::string learner_priority_class;
  std::string coordinator_priority_class;
  api::JobSettings jobs;
  bool job_network_policies = false;
  std::string job_metrics_from = "[]";  // JSON, a list
  std::string job_learner_egress;       // JSON, a list; or ""
  std::string kubeconfig;
  std::string crash_notes;  // a file; empty: nothing is noted
  bool libcurl = false;     // rather than cpprest
  bool scrape_annotations = false;
  // Of the leader, twice as many in a burst; the chart says the same. An admission takes three, so
  // that 200 jobs a second can be admitted. It bounds our own mistakes: the API server protects
  // itself by priority and fairness, and its 429 are heeded.
  int api_requests_per_second = 600;
  int lease_seconds = 15;
  std::string gpu_resource = "nvidia.com/gpu";
  log::Format log_format = log::Format::kText;
  log::Level log_level = log::Level::kInfo;
};

// Ends the program after --help, or when an option is wrong.
OperatorOptions ParseOptionsOrExit(int argc, char** argv);

}  // namespace pliant
