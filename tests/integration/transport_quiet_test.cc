// Requests that take longer than an HTTP library's own timeout.
#include <chrono>
#include <future>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "operator/kube/transports.h"
#include "tests/integration/scripted_server.h"
#include "tests/integration/test_certificates.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

// Only our deadlines apply. By default cpprestsdk aborts after 30 s of silence: while it waits for
// the answer of Send, and between two bookmarks of a watch.
constexpr auto kQuiet = 33s;

TEST(QuietTransportTest, TheLibraryAddsNoTimeoutOfItsOwn) {
  const TestAuthority authority;
  const ScriptedServer server(authority, {},
                              [](ServerConnection& connection, const ReceivedRequest& request) {
                                if (request.target == "/late") {
                                  std::this_thread::sleep_for(kQuiet);
                                  connection.Answer(200, "late");
                                  return;
                                }
                                connection.BeginChunked();
                                connection.Chunk("bookmark\n");
                                std::this_thread::sleep_for(kQuiet);
                                connection.Chunk("bookmark\n");
                                connection.EndChunked();
                              });
  Config config;
  config.server = server.url();
  config.certificate_authority.text = authority.pem();
  const auto get = [&config](TransportKind kind) -> Result<HttpResponse> {
    const auto transport = MakeTransport(kind, config);
    if (!transport) return std::unexpected(transport.error());
    return (*transport)->Send({.target = "/late", .deadline = 2 * kQuiet});
  };
  // Number of received lines.
  const auto watch = [&config](TransportKind kind) -> Result<int> {
    const auto transport = MakeTransport(kind, config);
    if (!transport) return std::unexpected(transport.error());
    int lines = 0;
    const auto count = [&lines](std::string_view) {
      ++lines;
      return true;
    };
    const auto response = (*transport)->Stream({.target = "/watch"}, count, 2 * kQuiet);
    if (!response) return std::unexpected(response.error());
    return lines;
  };
  // All run at the same time.
  struct Asked {
    std::future<Result<HttpResponse>> answer;
    std::future<Result<int>> lines;
  };
  std::vector<Asked> asked;
  for (const TransportKind kind : {TransportKind::kCpprest, TransportKind::kLibcurl}) {
    asked.push_back({.answer = std::async(std::launch::async, get, kind),
                     .lines = std::async(std::launch::async, watch, kind)});
  }
  for (Asked& each : asked) {
    const auto answer = each.answer.get();
    ASSERT_TRUE(answer) << answer.error();
    EXPECT_EQ(answer->body, "late");
    const auto lines = each.lines.get();
    ASSERT_TRUE(lines) << lines.error();
    EXPECT_EQ(*lines, 2);
  }
}

}  // namespace
}  // namespace pliant::kube
