#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/http_server.h"
#include "base/real_event_loop.h"
#include "base/secret.h"
#include "operator/controller/coordinators/http_coordinator_client.h"
#include "tests/unit/tls_listener.h"

namespace pliant::controller {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

api::WallTime Now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

// A way to reach a coordinator.
struct Way {
  const char* name;
  kube::TransportKind library;
  const char* address;
};

bool HasAddress(const std::string& address) {
  RealEventLoop loop;
  return HttpServer::Listen(loop, {.address = address}, {}).has_value();
}

// A coordinator's server, with TLS on loopback and the credentials that the operator made for it.
class CoordinatorClientTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!HasAddress(GetParam().address)) GTEST_SKIP() << "this machine has no IPv6";
    const auto keys = MakeMasterKeys(Now());
    ASSERT_TRUE(keys) << keys.error();
    keys_ = *keys;
    const auto credentials = MakeJobCredentials(keys_, "uid-1", Now());
    ASSERT_TRUE(credentials) << credentials.error();
    folder_ = std::filesystem::temp_directory_path() /
              ("pliant-coordinator-client-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "tls.crt") << credentials->certificate;
    std::ofstream(folder_ / "tls.key") << credentials->key;
    const auto admit = [token = credentials->operator_token](std::string_view offered) {
      return ConstantTimeEquals(offered, token) ? Access::kGranted : Access::kUnknown;
    };
    auto server = HttpServer::Listen(
        loop_,
        {.address = GetParam().address,
         .tls = TlsFiles{.certificate = folder_ / "tls.crt", .key = folder_ / "tls.key"}},
        {{.method = "GET",
          .path = "/v1/progress",
          .handle = [this](const ServerRequest&) { return answer_; },
          .admit = admit},
         {.method = "PUT",
          .path = "/v1/plan",
          .handle =
              [this](const ServerRequest& request) {
                plan_ = request.body;
                return answer_;
              },
          .admit = admit}});
    ASSERT_TRUE(server) << server.error();
    server_ = *std::move(server);
    port_ = server_->port();
    thread_ = std::jthread([this] { loop_.Run(); });
  }

  void TearDown() override {
    if (server_ == nullptr) return;
    loop_.Post([this] {
      server_.reset();
      loop_.Stop();
    });
    thread_.join();
    std::filesystem::remove_all(folder_);
  }

  CoordinatorAddress Address(const std::string& uid = "uid-1") const {
    return {.host = GetParam().address, .job_uid = uid, .port = port_};
  }

  const HttpCoordinatorClient::Connect connect_ =
      ConnectBy(kube::TransportsToMany(GetParam().library));
  MasterKeys keys_;
  std::filesystem::path folder_;
  RealEventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
  // Set before a call; the loop reads it while the call waits.
  ServerResponse answer_{.body = R"({"term": 2, "state": "Running", "step": 7})"};
  std::string plan_;
  std::jthread thread_;
};

INSTANTIATE_TEST_SUITE_P(Libraries, CoordinatorClientTest,
                         testing::Values(Way{"Cpprest", kube::TransportKind::kCpprest, "127.0.0.1"},
                                         Way{"Libcurl", kube::TransportKind::kLibcurl, "127.0.0.1"},
                                         Way{"CpprestIpv6", kube::TransportKind::kCpprest, "::1"},
                                         Way{"LibcurlIpv6", kube::TransportKind::kLibcurl, "::1"}),
                         [](const auto& way) { return way.param.name; });

TEST_P(CoordinatorClientTest, TalksToACoordinatorByTheNameOfItsJob) {
  HttpCoordinatorClient client(keys_, connect_);
  const auto progress = client.GetProgress(Address());
  ASSERT_TRUE(progress) << progress.error();
  EXPECT_EQ(progress->step, 7);
  const CoordinatorPlan plan{.stamp = {3, 4}, .learners = {{.name = "a", .pod_uid = "u"}}};
  const auto taken = client.PutPlan(Address(), plan);
  ASSERT_TRUE(taken) << taken.error();
  EXPECT_EQ(plan_, EncodePlan(plan));
}

TEST_P(CoordinatorClientTest, TrustsNoOtherAuthority) {
  const auto others = MakeMasterKeys(Now());
  ASSERT_TRUE(others);
  HttpCoordinatorClient client(*others, connect_);
  const auto progress = client.GetProgress(Address());
  ASSERT_FALSE(progress);
  EXPECT_EQ(progress.error().code, ErrorCode::kUnavailable);
}

// A token that was sent is disclosed, whatever the answer. So the handshake itself has to fail.
TEST_P(CoordinatorClientTest, AnotherJobsTokenIsRefused) {
  HttpCoordinatorClient client(keys_, connect_);
  const auto credentials = MakeJobCredentials(keys_, "uid-1", Now());
  ASSERT_TRUE(credentials) << credentials.error();
  TlsListener coordinator(credentials->certificate, credentials->key);
  const auto call = [&](const std::string& uid) {
    CoordinatorAddress address = Address(uid);
    address.host = "127.0.0.1";
    address.port = coordinator.port();
    return client.GetProgress(address).error();
  };
  const Error refused = call("uid-2");
  EXPECT_EQ(refused.code, ErrorCode::kUnavailable);
  EXPECT_THAT(refused.message, HasSubstr("not for this host name"));
  EXPECT_EQ(coordinator.Next(), TlsListener::Heard{});
  // To the right coordinator the token is sent.
  call("uid-1");
  EXPECT_THAT(coordinator.Next().text,
              AllOf(StartsWith("GET /v1/progress"), HasSubstr(credentials->operator_token)));
}

TEST_P(CoordinatorClientTest, SpeaksNoOlderTls) {
  HttpCoordinatorClient client(keys_, connect_);
  for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto credentials = MakeJobCredentials(keys_, "uid-1", Now());
    ASSERT_TRUE(credentials);
    TlsListener coordinator(credentials->certificate, credentials->key, newest);
    CoordinatorAddress address = Address();
    address.host = "127.0.0.1";
    address.port = coordinator.port();
    EXPECT_EQ(client.GetProgress(address).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(coordinator.Next().handshake, newest == TLS1_3_VERSION);
  }
}

TEST_P(CoordinatorClientTest, TellsARefusedPlanFromOneThatIsNotUnderstood) {
  HttpCoordinatorClient client(keys_, connect_);
  answer_ = ErrorResponse(409, "a greater plan was taken");
  EXPECT_EQ(client.PutPlan(Address(), {}).error().code, ErrorCode::kConflict);
  answer_ = ErrorResponse(400, "learners[0].state: not known");
  EXPECT_EQ(client.PutPlan(Address(), {}).error().code, ErrorCode::kInvalid);
  answer_ = {.body = "<html>"};
  EXPECT_EQ(client.GetProgress(Address()).error().code, ErrorCode::kInvalid);
}

TEST_P(CoordinatorClientTest, MayNotFillTheOperatorsMemory) {
  HttpCoordinatorClient client(keys_, connect_);
  const std::string progress = answer_.body;
  answer_ = {.body = progress + std::string(1 << 19, ' ')};
  EXPECT_TRUE(client.GetProgress(Address()));
  answer_ = {.body = progress + std::string(1 << 20, ' ')};
  const auto answer = client.GetProgress(Address());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
}

TEST_P(CoordinatorClientTest, AForgottenCoordinatorMayBeCalledAgain) {
  HttpCoordinatorClient client(keys_, connect_);
  ASSERT_TRUE(client.GetProgress(Address()));
  client.Forget("uid-1");
  EXPECT_TRUE(client.GetProgress(Address()));
}

TEST_P(CoordinatorClientTest, NobodyThereIsUnavailable) {
  HttpCoordinatorClient client(keys_, connect_);
  CoordinatorAddress address = Address();
  address.port = 1;
  EXPECT_EQ(client.GetProgress(address).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace pliant::controller
