#include "trainer/coordinator/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

namespace pliant {

CoordinatorProcessOptions ParseOptionsOrExit(int argc, char** argv) {
  CoordinatorProcessOptions options;
  CLI::App app(
      "The coordinator of one job: decides which learners train and issues memberships. The "
      "operator pushes plans to it, learners connect to it.");
  app.add_option("--job", options.job, "<namespace>/<name> of the job")->envname("PLIANT_JOB");
  app.add_option("--job-uid", options.job_uid, "uid of the job")->envname("PLIANT_JOB_UID");
  app.add_option("--term", options.term,
                 "number of this coordinator; the operator increases it for each new one")
      ->envname("PLIANT_TERM")
      ->required()
      ->check(CLI::PositiveNumber);
  app.add_option("--max-learners", options.max_learners, "maximum number of learners; 0: no limit")
      ->envname("PLIANT_MAX_LEARNERS")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--tls-dir", options.tls_dir,
                 "folder with tls.crt, tls.key, operator-token and learner-token")
      ->envname("PLIANT_TLS_DIR")
      ->capture_default_str();
  app.add_option("--state-dir", options.state_dir, "folder for the membership counter")
      ->envname("PLIANT_STATE_DIR")
      ->capture_default_str();
  app.add_option("--address", options.address, "address to listen on; default: all addresses");
  app.add_option("--port", options.port, "port for operator and learners (TLS); 0: any free port")
      ->capture_default_str();
  app.add_option("--status-port", options.status_port,
                 "port for /metrics and /progress (plain, read-only); 0: any free port")
      ->capture_default_str();
  app.add_option("--probe-port", options.probe_port,
                 "port for the kubelet's /healthz; 0: any free port")
      ->capture_default_str();
  const std::map<std::string, log::Level> levels = {{"debug", log::Level::kDebug},
                                                    {"info", log::Level::kInfo},
                                                    {"warning", log::Level::kWarning},
                                                    {"error", log::Level::kError}};
  app.add_option("--log-level", options.log_level, "debug, info, warning or error")
      ->transform(CLI::CheckedTransformer(levels));
  const std::map<std::string, log::Format> formats = {{"json", log::Format::kJson},
                                                      {"text", log::Format::kText}};
  app.add_option("--log-format", options.log_format, "json or text")
      ->transform(CLI::CheckedTransformer(formats));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return options;
}

}  // namespace pliant
