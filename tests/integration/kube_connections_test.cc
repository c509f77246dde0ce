// How many connections the transports keep to a real API server.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/integration/api_server.h"
#include "tests/kube/kinds.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

// Number of connections of this process to this port.
int ConnectionsTo(int port) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    const int descriptor = std::stoi(entry.path().filename());
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.ss_family == AF_INET) {
      count += ntohs(reinterpret_cast<const sockaddr_in&>(peer).sin_port) == port ? 1 : 0;
    } else if (peer.ss_family == AF_INET6) {
      count += ntohs(reinterpret_cast<const sockaddr_in6&>(peer).sin6_port) == port ? 1 : 0;
    }
  }
  return count;
}

class KubeConnectionsTest : public ApiServerTest {};

// A watch and a list at the same time need two connections, or one with HTTP/2. libcurl speaks
// HTTP/2, because the API server offers it; cpprestsdk never does.
TEST_F(KubeConnectionsTest, OverHttp2AWatchAndAListShareOne) {
  const char* library = std::getenv("PLIANT_TEST_TRANSPORT");
  const bool libcurl = library != nullptr && std::string_view(library) == "libcurl";
  const int port = std::stoi(config().server.substr(config().server.rfind(':') + 1));
  ASSERT_TRUE(client().Create(kConfigMaps, ConfigMap("a")));
  const auto transport = Connect(config());
  ASSERT_TRUE(transport) << transport.error();
  KubeClient client(**transport, config());
  const int before = ConnectionsTo(port);
  std::optional<int> more;
  const auto watched = client.Watch(kConfigMaps, ns(), {.initial_events = true, .timeout = 10s},
                                    [&](WatchEventType, const nlohmann::json&) {
                                      const auto listed = client.List(kConfigMaps, ns());
                                      EXPECT_TRUE(listed) << listed.error();
                                      more = ConnectionsTo(port) - before;
                                      return false;
                                    });
  EXPECT_TRUE(watched) << watched.error();
  EXPECT_EQ(more, libcurl ? 1 : 2);
}

}  // namespace
}  // namespace pliant::kube
