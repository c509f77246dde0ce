#include "operator/kube/exec_plugin.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kAnswerVersion = "client.authentication.k8s.io/v1";

std::string Answer(const json& status, const std::string& version = kAnswerVersion) {
  return json{{"kind", "ExecCredential"}, {"apiVersion", version}, {"status", status}}.dump();
}

const json kPair = {{"clientCertificateData", "-----BEGIN CERTIFICATE-----"},
                    {"clientKeyData", "-----BEGIN PRIVATE KEY-----"}};

TEST(ExecPlugin, TakesATokenOrACertificateOrBoth) {
  const auto token = ParseExecCredential(
      Answer({{"token", "t0k.en"}, {"expirationTimestamp", "2026-01-02T03:04:05Z"}}),
      kAnswerVersion);
  ASSERT_TRUE(token) << token.error();
  EXPECT_EQ(token->token, "t0k.en");
  EXPECT_EQ(token->expires,
            std::chrono::sys_days(std::chrono::year(2026) / 1 / 2) + 3h + 4min + 5s);
  const auto pair = ParseExecCredential(Answer(kPair), kAnswerVersion);
  ASSERT_TRUE(pair) << pair.error();
  EXPECT_EQ(pair->token, "");
  EXPECT_EQ(pair->client_certificate, "-----BEGIN CERTIFICATE-----");
  EXPECT_EQ(pair->client_key, "-----BEGIN PRIVATE KEY-----");
  EXPECT_EQ(pair->expires, std::nullopt);
  json both = kPair;
  both["token"] = "t";
  both["expirationTimestamp"] = nullptr;
  EXPECT_TRUE(ParseExecCredential(Answer(both), kAnswerVersion));
}

struct WrongCase {
  std::string output;
  std::string sentence;
};

const WrongCase kWrong[] = {
    {"", "no JSON object"},
    {"secret", "no JSON object"},
    {"[\"secret\"]", "no JSON object"},
    {R"({"status": {"token": "secret"}})", "kind is not"},
    {Answer({{"token", "secret"}}, "client.authentication.k8s.io/v1beta1"), "apiVersion is not"},
    {R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1"})",
     "status is missing"},
    {Answer("secret"), "status is missing"},
    {Answer(json::object()), "neither token nor"},
    {Answer({{"token", 5}}), "status.token is no text"},
    {Answer({{"token", "secret\r\nX-Header: y"}}), "status.token holds"},
    {Answer({{"token", "secret secret"}}), "status.token holds"},
    {Answer({{"token", "t"}, {"expirationTimestamp", "secret"}}), "status.expirationTimestamp"},
    {Answer({{"clientCertificateData", kPair["clientCertificateData"]}}), "go together"},
    {Answer({{"clientCertificateData", "secret"}, {"clientKeyData", "secret"}}),
     "status.clientCertificateData is no PEM"},
};

TEST(ExecPlugin, RefusesAllElseAndTellsNoSecret) {
  for (const WrongCase& test : kWrong) {
    const auto parsed = ParseExecCredential(test.output, kAnswerVersion);
    ASSERT_FALSE(parsed) << test.output;
    EXPECT_THAT(parsed.error().message, AllOf(HasSubstr(test.sentence), Not(HasSubstr("secret"))));
  }
}

ExecPlugin Script(const std::string& script) {
  return {.api_version = kAnswerVersion,
          .command = {.program = "sh", .arguments = {"-c", script}},
          .install_hint = "get it at example.com\n"};
}

TEST(ExecPlugin, RunsAndIsUnderstood) {
  const auto credential = RunExecPlugin(Script("echo '" + Answer({{"token", "t"}}) + "'"));
  ASSERT_TRUE(credential) << credential.error();
  EXPECT_EQ(credential->token, "t");
}

TEST(ExecPlugin, SaysWhatKeepsItFromAnAnswer) {
  ExecPlugin absent = Script("");
  absent.command.program = "no-such-plugin";
  ExecPlugin slow = Script("sleep 60");
  slow.command.time_most = 50ms;
  const std::pair<ExecPlugin, std::string> cases[] = {
      {absent, "no-such-plugin: No such file or directory. get it at example.com"},
      {slow, "not done after 50ms"},
      {Script("echo '{\"token\": \"secret\"}'; printf 'log in\\nfirst\\033' >&2; exit 3"),
       "failed with exit status 3: log in first"},
      {Script("echo secret"), "gave no usable ExecCredential: what it wrote is no JSON object"}};
  for (const auto& [plugin, sentence] : cases) {
    const auto credential = RunExecPlugin(plugin);
    ASSERT_FALSE(credential) << sentence;
    EXPECT_EQ(credential.error().code, ErrorCode::kUnavailable) << "no refusal of the server";
    EXPECT_THAT(credential.error().message, AllOf(HasSubstr(sentence), Not(HasSubstr("secret"))));
  }
}

}  // namespace
}  // namespace pliant::kube
