// The tests of the real API server, with the one in memory.
#include "tests/integration/api_server.h"
#include "tests/kube/memory_api_server.h"

namespace pliant::kube {
namespace {

constexpr const char* kToken = "known";

// A server with the part of the controller manager that the tests need.
class ManagedServer {
 public:
  ManagedServer() {
    server_.on_change = [this](const std::string& path, const MemoryApiServer::Object& object) {
      const bool new_namespace = path.starts_with("/api/v1/namespaces/") &&
                                 path.find('/', 19) == std::string::npos && object != nullptr;
      const std::string account = path + "/serviceaccounts/default";
      if (!new_namespace || server_.Find(account) != nullptr) return;
      server_.Put(
          account,
          {{"metadata", {{"name", "default"}, {"namespace", object->at("metadata").at("name")}}}});
    };
  }
  MemoryApiServer& server() { return server_; }

 private:
  MemoryApiServer server_{{.token = kToken}};
};

// One server for all tests of the program; each test has a namespace of its own.
MemoryApiServer& Server() {
  static ManagedServer managed;
  return managed.server();
}

class Connection final : public HttpTransport {
 public:
  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    return Server().Send(request, stop);
  }
  Result<HttpResponse> Stream(const HttpRequest& request, const LineSink& sink, Duration idle,
                              std::stop_token stop) override {
    return Server().Stream(request, sink, idle, stop);
  }
};

}  // namespace

Result<Config> ApiServerTest::ConfigOfServer() {
  return Config{.server = "https://memory", .token = kToken};
}

Result<std::unique_ptr<HttpTransport>> ApiServerTest::Connect(const Config&) {
  return std::make_unique<Connection>();
}

}  // namespace pliant::kube
