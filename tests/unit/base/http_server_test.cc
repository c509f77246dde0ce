#include "base/http_server.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/real_event_loop.h"
#include "base/secret.h"
#include "tests/unit/no_descriptors.h"
#include "tests/unit/raw_client.h"

namespace pliant {
namespace {
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::size_t kMaxBody = 1000;

Access AdmitTokens(std::string_view token) {
  if (ConstantTimeEquals(token, "operator")) return Access::kGranted;
  if (ConstantTimeEquals(token, "learner")) return Access::kForbidden;
  return Access::kUnknown;
}

class HttpServerTest : public testing::Test {
 protected:
  void Listen(HttpServerOptions options) {
    Listen(options, {{.method = "GET",
                      .path = "/hello",
                      .handle =
                          [](const ServerRequest& request) {
                            return ServerResponse{.body = "hello " + request.query};
                          }},
                     {.method = "PUT",
                      .path = "/echo",
                      .handle =
                          [](const ServerRequest& request) {
                            return ServerResponse{.body = std::to_string(request.body.size()) +
                                                          ":" + request.body};
                          },
                      .admit = AdmitTokens},
                     {.method = "GET", .path = "/socket", .accept = [](auto) {
                        return WebSocketCallbacks{};
                      }}});
  }

  void Listen(HttpServerOptions options, std::vector<HttpRoute> routes) {
    options.address = "127.0.0.1";
    options.max_body_bytes = kMaxBody;
    auto server = HttpServer::Listen(loop_, options, std::move(routes));
    ASSERT_TRUE(server) << server.error();
    server_ = *std::move(server);
    thread_ = std::jthread([this] { loop_.Run(); });
  }

  std::string Exchange(std::string_view request) {
    RawClient client(server_->port());
    client.Send(request);
    return client.ReadAll();
  }

  ~HttpServerTest() override {
    if (!thread_.joinable()) return;
    loop_.Post([this] {
      server_.reset();
      loop_.Stop();
    });
    thread_.join();
  }

  RealEventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::jthread thread_;
};

TEST_F(HttpServerTest, AnswersEveryRequestWithItsStatus) {
  Listen({});
  struct Case {
    std::string name;
    std::string request;
    std::string want_status;
    std::string want_body;
  };
  const std::string close = "Host: h\r\nConnection: close\r\n";
  const std::string token = "Authorization: Bearer operator\r\n";
  const Case kCases[] = {
      {"a route", "GET /hello?a=b HTTP/1.1\r\n" + close + "\r\n", "200", "hello a=b"},
      {"a body", "PUT /echo HTTP/1.1\r\n" + close + token + "Content-Length: 3\r\n\r\nabc", "200",
       "3:abc"},
      {"a chunked body",
       "PUT /echo HTTP/1.1\r\n" + close + token +
           "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
       "200", "5:abcde"},
      {"a scheme in capitals",
       "PUT /echo HTTP/1.1\r\n" + close +
           "Authorization: BEARER operator\r\nContent-Length: 0\r\n\r\n",
       "200", "0:"},
      {"a client that sends Expect first",
       "PUT /echo HTTP/1.1\r\n" + close + token +
           "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
       "100", "3:abc"},
      {"the largest body",
       "PUT /echo HTTP/1.1\r\n" + close + token + "Content-Length: 1000\r\n\r\n" +
           std::string(kMaxBody, 'x'),
       "200", "1000:x"},
      {"a body whose announced size is too large",
       "PUT /echo HTTP/1.1\r\n" + close + token + "Content-Length: 1001\r\n\r\n" +
           std::string(kMaxBody + 1, 'x'),
       "413", "too large"},
      {"a body that turns out too large",
       "PUT /echo HTTP/1.1\r\n" + close + token + "Transfer-Encoding: chunked\r\n\r\nfff\r\n" +
           std::string(0xfff, 'x') + "\r\n0\r\n\r\n",
       "413", "too large"},
      {"megabytes after a refusal",
       "PUT /echo HTTP/1.1\r\n" + close + token + "Content-Length: 3000000\r\n\r\n" +
           std::string(3000000, 'x'),
       "413", "too large"},
      {"an endless header", "GET /hello HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n",
       "431", "header"},
      {"no HTTP", "\x16\x03\x01 hello\r\n\r\n", "400", "not a valid HTTP"},
      {"a body of no length", "PUT /echo HTTP/1.1\r\nContent-Length: -5\r\n\r\n", "400", "valid"},
      {"no such path", "GET /nowhere HTTP/1.1\r\n" + close + "\r\n", "404", "no such path"},
      {"a path is matched whole", "GET /hello/ HTTP/1.1\r\n" + close + "\r\n", "404", "path"},
      {"no such method", "DELETE /hello HTTP/1.1\r\n" + close + "\r\n", "405", "method"},
      {"no token", "PUT /echo HTTP/1.1\r\n" + close + "Content-Length: 3\r\n\r\nabc", "401",
       "token"},
      {"a wrong token", "PUT /echo HTTP/1.1\r\n" + close + "Authorization: Bearer operatoR\r\n\r\n",
       "401", "token"},
      {"the start of the token",
       "PUT /echo HTTP/1.1\r\n" + close + "Authorization: Bearer operato\r\n\r\n", "401", "token"},
      {"another scheme", "PUT /echo HTTP/1.1\r\n" + close + "Authorization: Basic operator\r\n\r\n",
       "401", "token"},
      {"a token without the right",
       "PUT /echo HTTP/1.1\r\n" + close + "Authorization: Bearer learner\r\n\r\n", "403",
       "may not"},
      {"a WebSocket without a handshake", "GET /socket HTTP/1.1\r\n" + close + "\r\n", "426",
       "WebSocket"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(Exchange(c.request),
                AllOf(StartsWith("HTTP/1.1 " + c.want_status + " "), HasSubstr(c.want_body)));
  }
}

TEST_F(HttpServerTest, AConnectionServesManyRequests) {
  Listen({});
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    client.Send("GET /hello?" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(client.ReadUntil("hello " + std::to_string(i)), StartsWith("HTTP/1.1 200 OK"));
  }
  // A refusal that leaves no unread bytes keeps the connection open, too.
  client.Send("GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\nGET /hello?x HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("hello x"), StartsWith("HTTP/1.1 404"));
}

TEST_F(HttpServerTest, AClientThatDoesNotFinishItsRequestIsCutOff) {
  Listen({.request_timeout = 100ms});
  for (const std::string_view beginning :
       {"", "GET /hello HTTP/1.1\r\nHost:",
        "PUT /echo HTTP/1.1\r\nAuthorization: Bearer operator\r\nContent-Length: 5\r\n\r\nab"}) {
    SCOPED_TRACE(beginning);
    EXPECT_EQ(Exchange(beginning), "");
  }
  // Slow sending does not extend the timeout.
  RawClient slow(server_->port());
  for (int i = 0; i < 20; ++i) {
    slow.Send("G");
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_THAT(slow.ReadAll(), testing::AnyOf("", "[reset]"));
}

TEST_F(HttpServerTest, ConnectionsBeyondTheMostAreRefused) {
  Listen({.max_connections = 2});
  RawClient first(server_->port());
  RawClient second(server_->port());
  first.Send("GET /hello?1 HTTP/1.1\r\nHost: h\r\n\r\n");
  second.Send("GET /hello?2 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(first.ReadUntil("hello 1"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(second.ReadUntil("hello 2"), StartsWith("HTTP/1.1 200"));
  // The server answers 503, even after the client's request, to a few clients at a time; it closes
  // the connections of the rest.
  EXPECT_THAT(Exchange("GET /hello HTTP/1.1\r\nHost: h\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too many connections")));
  std::list<RawClient> idle;
  for (int i = 0; i < 40; ++i) idle.emplace_back(server_->port());
  EXPECT_EQ(idle.back().ReadAll(), "");
  // Connected clients are still served.
  first.Send("GET /hello?3 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(first.ReadUntil("hello 3"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AFloodOfIdleConnectionsOnOnePortLeavesAnotherOneAlone) {
  Listen({.max_connections = 16});
  const auto probes =
      HttpServer::Listen(loop_, {.address = "127.0.0.1"},
                         {{.method = "GET", .path = "/healthz", .handle = [](const ServerRequest&) {
                             return ServerResponse{.body = "ok\n"};
                           }}});
  ASSERT_TRUE(probes) << probes.error();
  std::list<RawClient> idle;
  for (int i = 0; i < 1100; ++i) idle.emplace_back(server_->port());
  const auto took = [&] {
    const auto began = std::chrono::steady_clock::now();
    RawClient kubelet((*probes)->port());
    kubelet.Send("GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    EXPECT_THAT(kubelet.ReadAll(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("ok")));
    return std::chrono::steady_clock::now() - began;
  };
  // On a busy machine some answers are slow.
  EXPECT_LT(std::min({took(), took(), took()}), 1s);
}

TEST_F(HttpServerTest, OutOfDescriptorsItAcceptsLater) {
  Listen({});
  std::promise<void> held;
  std::promise<void> go;
  loop_.Post([&] {
    held.set_value();
    go.get_future().wait();
  });
  held.get_future().wait();
  RawClient client(server_->port());  // the kernel completes the connection
  client.Send("GET /hello?x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  testing::internal::CaptureStderr();
  {
    const NoDescriptors none;
    go.set_value();
    const std::clock_t before = std::clock();
    std::this_thread::sleep_for(350ms);
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 5) << "it does not spin";
  }
  EXPECT_THAT(client.ReadAll(), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("hello x")));
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("cannot accept a connection"));
  EXPECT_EQ(logged.find("cannot accept"), logged.rfind("cannot accept")) << "logged once";
}

TEST_F(HttpServerTest, SomeRoutesAnswerLater) {
  std::mutex mutex;
  std::vector<std::function<void(ServerResponse)>> waiting;
  const auto asked = [&](std::size_t count) {
    const std::lock_guard lock(mutex);
    return waiting.size() == count;
  };
  const std::string end = "\r\nConnection: close\r\n\r\n";
  const std::string get = "GET /later HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ";
  Listen({.answer_timeout = 2s, .max_large_answers = 2},
         {{.method = "GET",
           .path = "/later",
           .handle_later =
               [&](const ServerRequest&, std::function<void(ServerResponse)> done) {
                 const std::lock_guard lock(mutex);
                 waiting.push_back(std::move(done));
               },
           .admit_later =
               [](std::string_view token, std::function<void(Access)> done) {
                 if (token == "nobody knows") return;
                 std::jthread([known = AdmitTokens(token), done] { done(known); }).detach();
               },
           .large = true}});
  EXPECT_THAT(Exchange(get + "learner" + end), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Exchange(get + "guess" + end), StartsWith("HTTP/1.1 401"));
  RawClient undecided(server_->port());
  undecided.Send(get + "nobody knows" + end);
  EXPECT_TRUE(asked(0)) << "no answer before the client is admitted";

  RawClient first(server_->port());
  RawClient second(server_->port());
  first.Send(get + "operator\r\n\r\n");
  second.Send(get + "operator\r\n\r\n");
  while (!asked(2)) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(Exchange(get + "operator" + end),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("too many large answers")));
  {
    const std::lock_guard lock(mutex);
    for (const auto& done : waiting) done({.body = "at last"});
  }
  EXPECT_THAT(first.ReadUntil("at last"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(second.ReadUntil("at last"), StartsWith("HTTP/1.1 200"));
  // Their places are free again. A request whose answer never comes ends with a timeout.
  EXPECT_THAT(Exchange(get + "operator" + end),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("took too long")));
  EXPECT_TRUE(asked(3));
  EXPECT_THAT(undecided.ReadAll(),
              AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("could not be checked")));
}

TEST_F(HttpServerTest, APortInUseIsAnError) {
  Listen({});
  const auto second =
      HttpServer::Listen(loop_, {.address = "127.0.0.1", .port = server_->port()}, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(std::to_string(server_->port())));
}

}  // namespace
}  // namespace pliant
