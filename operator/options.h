#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "base/log.h"
#include "operator/api/elastic_training_job.h"
#include "operator/replay/replay.h"

namespace pliant {

struct OperatorOptions {
  // The network of jobs.
  struct JobNetwork {
    bool policies = false;
    std::string metrics_from = "[]";  // JSON, a list
    std::string learner_egress;       // JSON, a list; or ""
    bool nccl_allowed = false;
  };
  std::string ns;        // namespace of the lease, the keys and the operator's pods
  std::string identity;  // name of this replica's pod
  std::string pod_uid;   // its uid; "": it does not run in a pod
  std::string coordinator_image;
  std::vector<std::string> coordinator_pull_secrets;
  std::string coordinator_template;           // JSON, a part of a PodTemplateSpec; or ""
  std::vector<std::string> watch_namespaces;  // empty: all
  HostPort probe_address;
  HostPort metrics_address;
  bool metrics_authentication = false;
  std::string metrics_tls_dir;  // "": a certificate is created at start
  std::uint16_t debug_port = 6060;
  std::uint16_t timeline_port = 6061;  // 0: there is no timeline
  std::string learner_priority_class;
  std::string coordinator_priority_class;
  bool provisioning_requests = false;  // instead of placeholders
  std::string placeholder_priority_class;
  std::vector<std::string> placeholder_pull_secrets;
  api::JobSettings jobs;
  JobNetwork job_network;
  std::string kubeconfig;
  std::string crash_notes;  // a file; empty: no notes are written
  bool libcurl = false;     // instead of cpprest
  bool scrape_annotations = false;
  // Maximum for the leader; a burst may have twice as many. The chart has the same default. An
  // admission takes three requests, so 200 jobs per second can be admitted. The limit guards
  // against our own bugs: the API server protects itself by priority and fairness, and we obey its
  // 429 answers.
  int api_requests_per_second = 600;
  int lease_seconds = 15;
  std::string gpu_resource = "nvidia.com/gpu";
  log::Format log_format = log::Format::kText;
  log::Level log_level = log::Level::kInfo;
  replay::ReplayOptions replay;  // if it is asked for, the rest is not used
};

// Exits the program after --help, or if an option is wrong.
OperatorOptions ParseOptionsOrExit(int argc, char** argv);

}  // namespace pliant
