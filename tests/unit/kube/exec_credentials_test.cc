#include "operator/kube/exec_credentials.h"

#include <atomic>
#include <format>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/log.h"
#include "operator/kube/client.h"
#include "tests/kube/scripted_transport.h"
#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const auto kWallStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);
const CredentialSource::Clock::time_point kCredentialsStart{1000s};

// A plugin whose n-th run gives the token "token-n".
class ExecCredentialsTest : public testing::Test {
 protected:
  ExecCredentials Make(const std::string& script) {
    return ExecCredentials(PluginOf(script), [this] { return kWallStart + elapsed_.load(); });
  }
  ExecPlugin PluginOf(const std::string& script) {
    return {
        .api_version = "client.authentication.k8s.io/v1",
        .command = {.program = "sh",
                    .arguments = {"-c", "cd " + folder_.path() + "; echo run >> runs; " + script}}};
  }
  // The rest of a script, which answers; `more` are further fields of the status.
  static std::string Answers(const std::string& more = "") {
    return "echo '{\"kind\": \"ExecCredential\", \"apiVersion\": "
           "\"client.authentication.k8s.io/v1\", \"status\": {\"token\": \"token-'$(wc -l < "
           "runs)'\"" +
           more + "}}'";
  }
  // The first is good for ten minutes, the second for ten more.
  static std::string AnswersFor10Minutes() {
    return Answers(R"(, "expirationTimestamp": "2026-01-01T00:'$(wc -l < runs)'0:00Z")");
  }
  int runs() const {
    return static_cast<int>(
        std::ranges::count(ReadFile(folder_.path() + "/runs").value_or(""), '\n'));
  }
  // The time of all clocks.
  CredentialSource::Clock::time_point After(std::chrono::seconds elapsed) {
    elapsed_ = elapsed;
    return kCredentialsStart + elapsed;
  }
  bool WaitForRuns(int wanted) const {
    for (int i = 0; i < 500 && runs() < wanted; ++i) std::this_thread::sleep_for(10ms);
    return runs() == wanted;
  }

  const TempFolder folder_;
  std::atomic<std::chrono::seconds> elapsed_{0s};
};

TEST_F(ExecCredentialsTest, OneRunServesAllUntilTheCredentialNearsItsEnd) {
  ExecCredentials credentials = Make(AnswersFor10Minutes());
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 8; ++i) {
      callers.emplace_back([&] {
        const auto got = credentials.Get(kCredentialsStart);
        if (got && got->token == "token-1") ++right;
      });
    }
  }
  EXPECT_EQ(right, 8);
  EXPECT_EQ(credentials.Get(After(8min))->token, "token-1");
  EXPECT_EQ(runs(), 1);
}

TEST_F(ExecCredentialsTest, RenewsBeforeTheEndAndNobodyWaits) {
  ExecCredentials credentials =
      Make("[ $(wc -l < runs) = 1 ] || while [ ! -e go ]; do sleep 0.01; done; " +
           AnswersFor10Minutes());
  EXPECT_EQ(credentials.Get(kCredentialsStart)->token, "token-1");
  EXPECT_EQ(credentials.Get(After(9min + 1s))->token, "token-1") << "while the plugin runs";
  ASSERT_TRUE(WaitForRuns(2));
  EXPECT_EQ(credentials.Get(After(9min + 2s))->token, "token-1");
  folder_.Write("go", "");
  EXPECT_EQ(credentials.Get(After(10min))->token, "token-2") << "it has expired: who asks waits";
  EXPECT_EQ(runs(), 2);
}

TEST_F(ExecCredentialsTest, WithoutAnEndItIsGoodUntilItIsRefused) {
  ExecCredentials credentials = Make(Answers());
  const Credential first = *credentials.Get(kCredentialsStart);
  EXPECT_EQ(credentials.Get(After(10h))->token, "token-1");
  EXPECT_TRUE(credentials.RenewAfterRefusal(first, After(10h)));
  EXPECT_EQ(credentials.Get(After(10h))->token, "token-2");
  EXPECT_TRUE(credentials.RenewAfterRefusal(first, After(10h)))
      << "others that were refused with it need no run of their own";
  EXPECT_EQ(runs(), 2);
  EXPECT_FALSE(credentials.RenewAfterRefusal(*credentials.Get(After(10h)), After(10h)))
      << "a server that refuses everything does not keep the plugin running";
  EXPECT_EQ(runs(), 2);
}

TEST_F(ExecCredentialsTest, AFailureIsToldAndTriedAgainAfterAPause) {
  ExecCredentials credentials =
      Make("[ -e fixed ] || { echo log in as root first >&2; exit 4; }; " + Answers());
  std::string logged;
  log::CopyLinesTo([&](std::string_view line) { logged += line; });
  for (const auto elapsed : {0s, 1s}) {
    const Error error = credentials.Get(After(elapsed)).error();
    EXPECT_EQ(error.code, ErrorCode::kUnavailable) << "nobody was refused anything";
    EXPECT_THAT(error.message, AllOf(HasSubstr("gives no credential"), Not(HasSubstr("log in"))))
        << "it may go on to users";
  }
  log::CopyLinesTo(nullptr);
  EXPECT_THAT(logged, HasSubstr("exit status 4: log in as root first"));
  EXPECT_EQ(runs(), 1) << "not a run for each request";
  folder_.Write("fixed", "");
  EXPECT_EQ(credentials.Get(After(5s))->token, "token-2");
}

TEST_F(ExecCredentialsTest, ARenewalThatFailsLeavesTheOldOneInUseWhileItIsGood) {
  ExecCredentials credentials = Make("[ $(wc -l < runs) = 1 ] || exit 4; " + AnswersFor10Minutes());
  EXPECT_EQ(credentials.Get(kCredentialsStart)->token, "token-1");
  EXPECT_EQ(credentials.Get(After(9min + 1s))->token, "token-1");
  ASSERT_TRUE(WaitForRuns(2));
  EXPECT_EQ(credentials.Get(After(9min + 59s))->token, "token-1");
  EXPECT_THAT(credentials.Get(After(10min + 10s)).error().message,
              HasSubstr("gives no credential"));
}

TEST_F(ExecCredentialsTest, WhatHasExpiredAlreadyIsAnErrorAndNoHotLoop) {
  ExecCredentials credentials = Make(AnswersFor10Minutes());
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(credentials.Get(After(1h)).error().message, HasSubstr("have expired"));
  }
  EXPECT_EQ(runs(), 1);
}

TEST_F(ExecCredentialsTest, WhoWaitsCanBeStopped) {
  ExecCredentials credentials = Make("sleep 60");
  std::stop_source stop;
  const std::jthread stopper([&] {
    std::this_thread::sleep_for(50ms);
    stop.request_stop();
  });
  EXPECT_EQ(credentials.Get(kCredentialsStart, {.stop = stop.get_token()}).error().code,
            ErrorCode::kCancelled);
}

TEST_F(ExecCredentialsTest, NobodyWaitsLongerThanHeWants) {
  ExecCredentials credentials = Make("while [ ! -e go ]; do sleep 0.01; done; " + Answers());
  const auto early = credentials.Get(kCredentialsStart, {.most = 20ms});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(early.error().message, HasSubstr("still runs"));
  folder_.Write("go", "");
  EXPECT_EQ(credentials.Get(After(1s))->token, "token-1") << "the same run, for whoever comes next";
}

TEST_F(ExecCredentialsTest, ARequestsDeadlineIsAlsoForItsCredential) {
  const auto credentials = std::make_shared<ExecCredentials>(PluginOf("sleep 60"));
  ScriptedTransport transport;
  KubeClient client(transport, Config{.server = "https://a", .exec = credentials},
                    {.read_deadline = 50ms, .write_deadline = 50ms});
  const auto begin = CredentialSource::Clock::now();
  EXPECT_EQ(client.GetRaw("/version").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.Delete(kPods, {"a", "p"}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client.Watch(kPods, "a", {}, [](auto&&...) { return true; }).error().code,
            ErrorCode::kUnavailable);
  EXPECT_LT(CredentialSource::Clock::now() - begin, 10s);
  EXPECT_TRUE(transport.requests().empty());
}

TEST_F(ExecCredentialsTest, ACertificateIsThereForConnections) {
  ExecCredentials credentials = Make(
      Answers(R"(, "clientCertificateData": "-----BEGIN C", "clientKeyData": "-----BEGIN K")"));
  EXPECT_FALSE(credentials.identity()) << "nothing runs for it alone";
  const Credential got = *credentials.Get(kCredentialsStart);
  const auto identity = credentials.identity();
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->certificate, "-----BEGIN C");
  EXPECT_EQ(identity->key, "-----BEGIN K");
  EXPECT_EQ(identity->serial, got.serial);
}

TEST_F(ExecCredentialsTest, AClientSendsItsTokenAndTriesOnceMoreWithANewOne) {
  // No injected clocks here: the client's own are real, and the first run has to lie back.
  const auto credentials = std::make_shared<ExecCredentials>(PluginOf(Answers()));
  ASSERT_TRUE(credentials->Get(CredentialSource::Clock::now() - 1min));
  ScriptedTransport transport;
  transport.Answer(HttpMethod::kGet, "/version", HttpResponse{.status = 401});
  transport.Answer(HttpMethod::kGet, "/version", HttpResponse{.status = 200, .body = "{}"});
  KubeClient client(transport, Config{.server = "https://a", .exec = credentials});
  EXPECT_TRUE(client.GetRaw("/version"));
  ASSERT_EQ(transport.requests().size(), 2u);
  EXPECT_EQ(transport.requests()[0].headers.at("Authorization"), "Bearer token-1");
  EXPECT_EQ(transport.requests()[1].headers.at("Authorization"), "Bearer token-2");
}

}  // namespace
}  // namespace pliant::kube
