// What takes longer than an HTTP library would wait by itself.
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "operator/kube/transports.h"
#include "tests/integration/scripted_server.h"
#include "tests/integration/test_certificates.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

// Ours are the deadlines. cpprestsdk would give up what is silent for 30 s: an answer of Send, and
// a watch between two bookmarks.
constexpr auto kQuiet = 33s;

TEST(QuietTransportTest, ALibraryGivesUpNothingByItself) {
  const TestAuthority authority;
  const ScriptedServer server(authority, {},
                              [](ServerConnection& connection, const ReceivedRequest&) {
                                std::this_thread::sleep_for(kQuiet);
                                connection.Answer(200, "late");
                              });
  Config config;
  config.server = server.url();
  config.certificate_authority.text = authority.pem();
  const auto get = [&config](TransportKind kind) -> Result<HttpResponse> {
    const auto transport = MakeTransport(kind, config);
    if (!transport) return std::unexpected(transport.error());
    return (*transport)->Send({.target = "/", .deadline = 2 * kQuiet});
  };
  auto over_libcurl = std::async(std::launch::async, get, TransportKind::kLibcurl);
  const auto cpprest = get(TransportKind::kCpprest);
  const auto libcurl = over_libcurl.get();
  ASSERT_TRUE(cpprest) << cpprest.error();
  EXPECT_EQ(cpprest->body, "late");
  ASSERT_TRUE(libcurl) << libcurl.error();
  EXPECT_EQ(libcurl->body, "late");
}

}  // namespace
}  // namespace pliant::kube
