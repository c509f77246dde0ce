#include "operator/web/servers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <list>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "base/format.h"
#include "base/real_event_loop.h"
#include "base/self_signed.h"
#include "operator/kube/transports.h"
#include "tests/unit/raw_client.h"

namespace pliant::web {
namespace {
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// The servers next to a running control loop.
class ServersTest : public testing::Test {
 protected:
  void Start(ServersOptions options) {
    options.probes.host = "127.0.0.1";
    auto servers = Servers::Start(
        control_, std::move(options),
        {.metrics =
             [this] {
               const int count = ++collected_;
               return [count] { return "collected " + std::to_string(count) + "\n"; };
             },
         .snapshot = [] { return [] { return std::string("{\"jobs\": []}"); }; },
         .explainer =
             [] {
               return [](std::string_view job) -> Result<std::string> {
                 return "explained " + std::string(job);
               };
             },
         .not_ready = [] { return std::string(); },
         .observe =
             [this](history::WallTime) {
               ++observed_;
               return std::vector<history::Observation>{
                   {{.kind = history::Kind::kJob, .name = "team-a/<b>", .node = ""},
                    history::Values{{history::Field::kGpus, std::int64_t{observed_}}}}};
             },
         .now = [] { return history::WallTime(std::chrono::milliseconds(1'800'000'000'000)); }});
    ASSERT_TRUE(servers) << servers.error();
    servers_ = *std::move(servers);
    thread_ = std::jthread([this] { control_.Run(); });
  }

  ~ServersTest() override {
    control_.Stop();
    if (thread_.joinable()) thread_.join();
  }

  static std::string Get(std::uint16_t port, const std::string& path) {
    RawClient client(port);
    client.Send("GET " + path + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    return client.ReadAll();
  }

  RealEventLoop control_;
  std::atomic<int> collected_ = 0;
  std::atomic<int> observed_ = 0;
  std::unique_ptr<Servers> servers_;
  std::jthread thread_;
};

TEST_F(ServersTest, EachPathIsOnItsOwnPort) {
  Start({});
  const std::uint16_t probes = servers_->probes_port();
  const std::uint16_t metrics = servers_->metrics_port();
  const std::uint16_t debug = servers_->debug_port();
  EXPECT_THAT(Get(probes, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(probes, "/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(metrics, "/metrics"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("collected")));
  EXPECT_THAT(Get(debug, "/debug/snapshot"), HasSubstr("{\"jobs\": []}"));
  EXPECT_THAT(Get(debug, "/debug/explain?job=a/b"), HasSubstr("explained a/b"));
  for (const char* path : {"/metrics", "/debug/snapshot", "/debug/explain?job=a/b"}) {
    EXPECT_THAT(Get(probes, path), StartsWith("HTTP/1.1 404")) << path;
  }
  for (const char* path : {"/healthz", "/readyz", "/debug/snapshot", "/debug/explain?job=a/b"}) {
    EXPECT_THAT(Get(metrics, path), StartsWith("HTTP/1.1 404")) << path;
  }
  // The debug view listens only on 127.0.0.1 itself.
  const std::uint32_t another = INADDR_LOOPBACK + 1;
  EXPECT_TRUE(RawClient(metrics, another).connected());
  EXPECT_FALSE(RawClient(debug, another).connected());
}

TEST_F(ServersTest, TheTimelineIsFollowedByAPageThatCannotBeMisused) {
  Start({.timeline_port = 0, .replica = "op-0_1f"});
  const std::uint16_t port = servers_->timeline_port();
  for (const char* path : {"/", "/app.js", "/style.css", "/state.js", "/timeline"}) {
    RawClient client(port);
    client.Send(
        Format("GET {} HTTP/1.1\r\nHost: localhost:6061\r\nConnection: close\r\n\r\n", path));
    EXPECT_THAT(client.ReadAll(),
                AllOf(StartsWith("HTTP/1.1 200"),
                      HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self'; "),
                      HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                      HasSubstr("Referrer-Policy: no-referrer\r\n")))
        << path;
  }
  RawClient page(port);
  page.Send("GET / HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(page.ReadAll(), AllOf(HasSubstr("Content-Type: text/html; charset=utf-8\r\n"),
                                    HasSubstr("<!doctype html>"), testing::EndsWith("</html>\n")));
  RawClient saved(port);
  saved.Send("GET /saved.html?from=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(
      saved.ReadAll(),
      AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Type: text/html; charset=utf-8\r\n"),
            HasSubstr("Content-Disposition: attachment; filename=\"pliant-timeline.html\"\r\n"),
            HasSubstr("id=\"saved\">[{\"name\":\"\",\"document\":{\"replica\":\"op-0_1f\","),
            HasSubstr(R"("team-a/\u003cb>":{"gpus":)"), testing::EndsWith("</html>\n")));
  RawClient wrong(port);
  wrong.Send("GET /saved.html?to=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(wrong.ReadAll(), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Get(port, "/timeline"), StartsWith("HTTP/1.1 403")) << "the header Host is h";
  RawClient reader(port);
  reader.Send("GET /timeline/stream HTTP/1.1\r\nHost: 127.0.0.1:6061\r\n\r\n");
  EXPECT_THAT(
      reader.ReadUntil("event: changes"),
      AllOf(HasSubstr("Content-Type: text/event-stream\r\n"), HasSubstr("id: op-0_1f/"),
            HasSubstr("event: frame\ndata: {\"replica\":"), HasSubstr(R"("team-a/<b>":{"gpus":)")));
  const std::uint32_t another = INADDR_LOOPBACK + 1;
  EXPECT_FALSE(RawClient(port, another).connected()) << "it listens on 127.0.0.1 only";
}

TEST_F(ServersTest, WithoutATimelineNothingIsRecorded) {
  Start({});
  EXPECT_EQ(servers_->timeline_port(), 0);
  EXPECT_EQ(observed_, 0);
}

TEST_F(ServersTest, ProbesAnswerWhateverIsAskedOfTheOthersAndOfTheControlLoop) {
  Start({});
  std::list<RawClient> idle;
  for (int i = 0; i < 1100; ++i) idle.emplace_back(servers_->metrics_port());
  std::latch busy(1);
  control_.Post([&busy] { busy.wait(); });
  const auto took = [this](const char* path) {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_THAT(Get(servers_->probes_port(), path), StartsWith("HTTP/1.1 200")) << path;
    return std::chrono::steady_clock::now() - began;
  };
  // On a busy machine some answers are slow.
  EXPECT_LT(std::min({took("/healthz"), took("/readyz"), took("/healthz")}), 1s);
  busy.count_down();
}

TEST_F(ServersTest, AFloodOfQuestionsAsksTheControlLoopOnceASecond) {
  Start({});
  const auto began = std::chrono::steady_clock::now();
  int answers = 0;
  RawClient client(servers_->metrics_port());
  while (std::chrono::steady_clock::now() - began < 500ms) {
    client.Send("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
    if (client.ReadUntil("collected 1\n").starts_with("HTTP/1.1 200")) ++answers;
  }
  EXPECT_GT(answers, 10);
  EXPECT_EQ(collected_, 1);
  std::this_thread::sleep_until(began + 1100ms);
  EXPECT_THAT(Get(servers_->metrics_port(), "/metrics"), HasSubstr("collected 2"));
}

TEST_F(ServersTest, WithAuthenticationTheMetricsAreForThoseWhoMayReadThemAndUnderTls) {
  const auto pem = MakeSelfSigned(
      "pliant-0", std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  ASSERT_TRUE(pem) << pem.error();
  Start({.metrics_tls = *pem,
         .review_metrics = [](const std::string& token) -> kube::KubeResult<Access> {
           if (token == "prometheus") return Access::kGranted;
           if (token == "tenant") return Access::kForbidden;
           if (token == "unlucky") {
             return std::unexpected(kube::KubeError(ErrorCode::kTimeout, "no answer"));
           }
           return Access::kUnknown;
         }});
  const std::string url = "https://127.0.0.1:" + std::to_string(servers_->metrics_port());
  for (const auto kind : {kube::TransportKind::kCpprest, kube::TransportKind::kLibcurl}) {
    const auto transport = kube::MakeTransport(
        kind, {.server = url, .certificate_authority = {.text = pem->certificate}});
    ASSERT_TRUE(transport) << transport.error();
    const auto status = [&](const std::string& authorization) {
      kube::HttpRequest request{.target = "/metrics", .headers = {{"Host", "pliant-0"}}};
      if (!authorization.empty()) request.headers["Authorization"] = authorization;
      const auto answer = (*transport)->Send(request);
      EXPECT_TRUE(answer) << answer.error();
      if (answer && answer->status != 200) {
        EXPECT_THAT(answer->body, testing::Not(HasSubstr("collected")));
      }
      return answer ? answer->status : 0;
    };
    EXPECT_EQ(status("Bearer prometheus"), 200);
    EXPECT_EQ(status("Bearer tenant"), 403);
    EXPECT_EQ(status("Bearer guess"), 401);
    EXPECT_EQ(status("Bearer unlucky"), 503);
    EXPECT_EQ(status("Basic prometheus"), 401);
    EXPECT_EQ(status(""), 401);
  }
  EXPECT_THAT(Get(servers_->metrics_port(), "/metrics"), testing::Not(HasSubstr("collected")))
      << "nothing in plain text";
  EXPECT_THAT(Get(servers_->probes_port(), "/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST_F(ServersTest, APortThatIsTakenIsAnError) {
  Start({});
  RealEventLoop other_control;
  const auto again =
      Servers::Start(other_control, {.metrics = {.host = "", .port = servers_->metrics_port()}},
                     {.metrics = [] { return [] { return std::string(); }; },
                      .snapshot = [] { return [] { return std::string(); }; },
                      .explainer =
                          [] {
                            return [](std::string_view job) -> Result<std::string> {
                              return "explained " + std::string(job);
                            };
                          },
                      .not_ready = [] { return std::string(); }});
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr(std::to_string(servers_->metrics_port())));
}

}  // namespace
}  // namespace pliant::web
