#include <chrono>
#include <csignal>
#include <cstdlib>

#include <unistd.h>

#include "base/http_server.h"
#include "base/log.h"
#include "base/real_event_loop.h"
#include "base/unix_offset.h"
#include "trainer/coordinator/coordinator_service.h"
#include "trainer/coordinator/counter_file.h"
#include "trainer/coordinator/options.h"

namespace pliant {
namespace {

// Connections on each of the two plain ports: a few scrapers, or the kubelet.
constexpr std::size_t kMaxStatusConnections = 16;

// Exits at once: learners keep training without a coordinator, and the next one finds everything
// with them or on disk. A handler is needed because the first process of a container has no default
// action for signals.
void ExitOnStopSignals() {
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { ::_exit(0); });
}

int FailWith(const Error& error) {
  log::Error("coordinator stops", {{"error", error.message}});
  return EXIT_FAILURE;
}

Result<std::unique_ptr<HttpServer>> ListenTls(RealEventLoop& loop, CoordinatorService& service,
                                              const CoordinatorProcessOptions& options) {
  return HttpServer::Listen(loop,
                            {.name = "api",
                             .address = options.address,
                             .port = options.port,
                             .tls = TlsFiles{.certificate = options.tls_dir / "tls.crt",
                                             .key = options.tls_dir / "tls.key"},
                             .max_body_bytes = kMaxPlanBytes,
                             .websocket = {.max_message_bytes = kMaxMessageBytes}},
                            service.ApiRoutes());
}

int Run(const CoordinatorProcessOptions& options) {
  const CounterFile counter_file(options.state_dir, options.term);
  const auto counter = counter_file.Read();
  if (!counter) return FailWith(counter.error());
  auto tokens = ReadCoordinatorTokens(options.tls_dir);
  if (!tokens) return FailWith(InContext("tokens", tokens.error()));

  RealEventLoop loop;
  int exit_code = EXIT_SUCCESS;
  CoordinatorService service(loop, options.job,
                             {.term = options.term,
                              .counter = *counter,
                              .max_learners = options.max_learners,
                              .unix_offset_seconds = UnixOffsetSeconds(loop)},
                             *std::move(tokens), counter_file, [&](const Error& error) {
                               exit_code = FailWith(error);
                               loop.Stop();
                             });
  const auto api = ListenTls(loop, service, options);
  if (!api) return FailWith(api.error());
  const auto status = HttpServer::Listen(loop,
                                         {.name = "status",
                                          .address = options.address,
                                          .port = options.status_port,
                                          .max_connections = kMaxStatusConnections},
                                         service.StatusRoutes());
  if (!status) return FailWith(status.error());
  const auto probes = HttpServer::Listen(loop,
                                         {.name = "probes",
                                          .address = options.address,
                                          .port = options.probe_port,
                                          .max_connections = kMaxStatusConnections},
                                         CoordinatorService::ProbeRoutes());
  if (!probes) return FailWith(probes.error());
  service.Start();
  log::Info("coordinator listens", {{"job", options.job},
                                    {"jobUid", options.job_uid},
                                    {"term", options.term},
                                    {"counter", *counter},
                                    {"port", (*api)->port()},
                                    {"statusPort", (*status)->port()},
                                    {"probePort", (*probes)->port()}});
  loop.Run();
  return exit_code;
}

}  // namespace
}  // namespace pliant

int main(int argc, char** argv) {
  const auto options = pliant::ParseOptionsOrExit(argc, argv);
  pliant::log::Configure(options.log_format, options.log_level);
  pliant::ExitOnStopSignals();
  return pliant::Run(options);
}
