// The contract of HttpTransport, tested for both libraries against a scripted server. Needs no API
// server.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "operator/kube/transports.h"
#include "tests/integration/scripted_server.h"
#include "tests/integration/test_certificates.h"
#include "tests/unit/kube/temp_folder.h"

namespace pliant::kube {
namespace {
using namespace std::chrono_literals;

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Clock = std::chrono::steady_clock;

// A listening socket on loopback, and its URL.
struct Listening {
  int descriptor = -1;
  std::string url;
};
Listening Listen() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener, 8), 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  return {.descriptor = listener,
          .url = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port))};
}

class TransportTest : public testing::TestWithParam<TransportKind> {
 protected:
  // Starts the server and a client that trusts it.
  void Serve(ScriptedServer::Handler handler, ScriptedServer::Options options = {}) {
    server_ = std::make_unique<ScriptedServer>(authority_, options, std::move(handler));
    config_.server = server_->url();
    config_.certificate_authority.text = authority_.pem();
    Connect();
  }
  void Connect() {
    auto made = MakeTransport(GetParam(), config_);
    ASSERT_TRUE(made) << made.error();
    transport_ = *std::move(made);
  }
  Result<HttpResponse> Get(const std::string& target = "/", Duration deadline = 10s,
                           std::stop_token stop = {}) {
    return transport_->Send({.target = target, .deadline = deadline}, stop);
  }
  Result<HttpResponse> Post(const std::string& target) {
    return transport_->Send(
        {.method = HttpMethod::kPost, .target = target, .body = "{}", .deadline = 10s});
  }
  // Stores the stream's lines in lines_.
  Result<HttpResponse> Stream(Duration idle = 10s, std::stop_token stop = {}) {
    const auto take = [this](std::string_view line) {
      lines_.emplace_back(line);
      return true;
    };
    return transport_->Stream({.target = "/watch", .deadline = 10s}, take, idle, stop);
  }

  const TestAuthority authority_;
  Config config_;
  std::unique_ptr<ScriptedServer> server_;
  std::unique_ptr<HttpTransport> transport_;  // destroyed before its server
  std::vector<std::string> lines_;
};

INSTANTIATE_TEST_SUITE_P(Libraries, TransportTest,
                         testing::Values(TransportKind::kCpprest, TransportKind::kLibcurl),
                         [](const auto& kind) {
                           return kind.param == TransportKind::kCpprest ? "Cpprest" : "Libcurl";
                         });

TEST_P(TransportTest, SendsWhatItIsGivenAndReturnsWhatComes) {
  ReceivedRequest received;
  Serve([&](ServerConnection& connection, const ReceivedRequest& request) {
    received = request;
    connection.Answer(201, "made", "X-Reason: because\r\n");
  });
  const std::string target = "/api/v1/namespaces/a/pods?labelSelector=a%3Db%2Cc&x=%C3%A4%2B1";
  const auto response =
      transport_->Send({.method = HttpMethod::kPatch,
                        .target = target,
                        .headers = {{"Content-Type", "application/merge-patch+json"},
                                    {"Authorization", "Bearer secret"}},
                        .body = R"({"a": "ä"})"});
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "made");
  EXPECT_EQ(response->headers.at("x-reason"), "because");
  EXPECT_EQ(received.method, "PATCH");
  EXPECT_EQ(received.target, target);
  EXPECT_EQ(received.headers.at("content-type"), "application/merge-patch+json");
  EXPECT_EQ(received.headers.at("authorization"), "Bearer secret");
  EXPECT_EQ(received.body, R"({"a": "ä"})");
}

TEST_P(TransportTest, EveryMethodAndStatusIsAnAnswer) {
  Serve([&](ServerConnection& connection, const ReceivedRequest& request) {
    const int status = std::stoi(request.target.substr(1));
    if (status == 204) {
      connection.Write("HTTP/1.1 204 No Content\r\n\r\n");
    } else {
      connection.Answer(status, request.method, "Retry-After: 7\r\n");
    }
  });
  for (const HttpMethod method : {HttpMethod::kGet, HttpMethod::kPost, HttpMethod::kPut,
                                  HttpMethod::kPatch, HttpMethod::kDelete}) {
    const auto response = transport_->Send({.method = method, .target = "/200", .body = "x"});
    ASSERT_TRUE(response) << response.error();
    EXPECT_EQ(response->body, ToString(method));
  }
  for (const int status : {204, 404, 409, 410, 422, 429, 500, 503}) {
    const auto response = Get("/" + std::to_string(status));
    ASSERT_TRUE(response) << response.error();
    EXPECT_EQ(response->status, status);
    if (status != 204) {
      EXPECT_EQ(response->headers.at("Retry-After"), "7");
    }
  }
  EXPECT_LT(server_->connections(), 13 / 2) << "connections are reused";
}

TEST_P(TransportTest, ARedirectIsAnAnswerAndTakesNoTokenAlong) {
  std::atomic<int> requests = 0;
  Serve([&](ServerConnection& connection, const ReceivedRequest&) {
    ++requests;
    connection.Answer(302, "", "Location: " + server_->url() + "/other\r\n");
  });
  const auto response = Get();
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->status, 302);
  EXPECT_EQ(requests, 1);
}

TEST_P(TransportTest, LargeBodiesArriveWholeWithAndWithoutALength) {
  std::string body;
  for (int i = 0; body.size() < 6'000'000; ++i) body += std::to_string(i) + ",";
  Serve([&](ServerConnection& connection, const ReceivedRequest& request) {
    if (request.target == "/length") {
      connection.Answer(200, body);
      return;
    }
    connection.BeginChunked();
    std::size_t size = 1;
    for (std::size_t at = 0; at < body.size(); at += size, size = size * 3 % 300'007 + 1) {
      connection.Chunk(body.substr(at, size));
    }
    connection.EndChunked();
  });
  for (const char* target : {"/length", "/chunked"}) {
    const auto response = Get(target);
    ASSERT_TRUE(response) << response.error();
    EXPECT_TRUE(response->body == body) << target << ": " << response->body.size();
  }
}

TEST_P(TransportTest, LinesArriveInOrderHoweverTheyAreCut) {
  std::string text;
  std::vector<std::string> want;
  for (int i = 0; i < 5000; ++i) {
    want.push_back("{\"n\": " + std::to_string(i) + ", \"text\": \"ä€\"}");
    text += want.back() + "\n";
  }
  Serve([&](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    for (std::size_t at = 0, size = 1; at < text.size(); at += size, size = size % 97 + 1) {
      connection.Chunk(text.substr(at, size));
    }
    connection.EndChunked();
  });
  const auto response = Stream();
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "");
  EXPECT_TRUE(lines_ == want);
}

TEST_P(TransportTest, ALineIsHandedOverWhenItComesAndNotLater) {
  std::promise<void> seen;
  Serve([&](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    connection.Chunk("one\n");
    EXPECT_EQ(seen.get_future().wait_for(5s), std::future_status::ready);
    connection.Chunk("two\n");
    connection.EndChunked();
  });
  const auto response = transport_->Stream(
      {.target = "/"},
      [&](std::string_view line) {
        if (line == "one") seen.set_value();
        lines_.emplace_back(line);
        return true;
      },
      10s);
  EXPECT_TRUE(response) << response.error();
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
}

TEST_P(TransportTest, ARefusedStreamIsAnAnswerWithABody) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.Answer(410, "line one\nline two\n");
  });
  const auto response = Stream();
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->status, 410);
  EXPECT_EQ(response->body, "line one\nline two\n");
  EXPECT_TRUE(lines_.empty());
}

TEST_P(TransportTest, TheSinkEndsTheStream) {
  std::promise<void> client_gone;
  Serve([&](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    connection.Chunk("one\ntwo\nthree\n");
    connection.WaitForClient();
    client_gone.set_value();
  });
  const auto response = transport_->Stream(
      {.target = "/"},
      [&](std::string_view line) {
        lines_.emplace_back(line);
        return line != "two";
      },
      10s);
  EXPECT_TRUE(response) << response.error();
  EXPECT_THAT(lines_, ElementsAre("one", "two"));
  EXPECT_EQ(client_gone.get_future().wait_for(5s), std::future_status::ready)
      << "the connection is closed";
}

TEST_P(TransportTest, ALineOf16MiBArrivesAndNoLonger) {
  constexpr std::size_t kMax = std::size_t{16} << 20;
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    const std::size_t size = request.target == "/most" ? kMax : kMax + 1;
    connection.Answer(200, std::string(size, 'x') + "\n");
  });
  std::size_t longest = 0;
  const auto stream = [&](const std::string& target) {
    longest = 0;
    return transport_->Stream(
        {.target = target},
        [&](std::string_view line) {
          longest = std::max(longest, line.size());
          return true;
        },
        10s);
  };
  EXPECT_TRUE(stream("/most"));
  EXPECT_EQ(longest, kMax);
  const auto refused = stream("/more");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("longer than 16777216 bytes"));
  EXPECT_EQ(longest, 0u);
}

TEST_P(TransportTest, AnEndlessLineIsRefused) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    const std::string chunk(1 << 16, 'x');
    while (connection.Chunk(chunk)) continue;
  });
  const auto response = Stream();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(lines_.empty());
}

// The caller abandons the stream while the library waits for room: it reads on and is cancelled at
// once.
TEST_P(TransportTest, StreamsAreAbandonedInTheMidstOfAFlood) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    const std::string chunk = std::string((1 << 16) - 1, 'x') + "\n";
    while (connection.Chunk(chunk)) continue;
  });
  std::atomic<int> abandoned = 0;
  const LineSink sink = [](std::string_view) {
    std::this_thread::sleep_for(10ms);
    return false;
  };
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 50; ++i)
          abandoned += transport_->Stream({.target = "/"}, sink, 10s) ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(abandoned, 4 * 50);
}

TEST_P(TransportTest, ASlowReaderSlowsTheServerDown) {
  std::atomic<std::size_t> sent = 0;
  Serve([&](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    const std::string chunk = std::string((1 << 16) - 1, 'x') + "\n";
    while (connection.Chunk(chunk)) sent += chunk.size();
  });
  std::size_t sent_while_reading_nothing = 0;
  const auto response = transport_->Stream(
      {.target = "/"},
      [&](std::string_view) {
        // Continue until the server has been blocked for a while.
        do {
          sent_while_reading_nothing = sent;
          std::this_thread::sleep_for(200ms);
        } while (sent != sent_while_reading_nothing);
        return false;
      },
      10s);
  EXPECT_TRUE(response) << response.error();
  EXPECT_LT(sent_while_reading_nothing, 16u << 20) << "the client's buffer is bounded";
}

TEST_P(TransportTest, AStreamThatBreaksIsUnavailable) {
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    connection.BeginChunked();
    connection.Chunk("whole\nhal");
    std::this_thread::sleep_for(50ms);
    request.headers.contains("X-Reset") ? connection.Reset() : connection.CloseHalfWay();
  });
  for (const HttpHeaders& headers : {HttpHeaders{}, HttpHeaders{{"X-Reset", "1"}}}) {
    lines_.clear();
    const auto response = transport_->Stream(
        {.target = "/", .headers = headers},
        [&](std::string_view line) {
          lines_.emplace_back(line);
          return true;
        },
        10s);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable) << response.error();
    EXPECT_THAT(lines_, ElementsAre("whole")) << "a partial line is not delivered";
  }
}

TEST_P(TransportTest, AnAnswerThatBreaksIsUnavailable) {
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    if (request.target == "/head")
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    if (request.target == "/body")
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    connection.CloseHalfWay();
  });
  for (const char* target : {"/nothing", "/head", "/body"}) {
    const auto response = Get(target);
    ASSERT_FALSE(response) << target;
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable) << response.error();
    EXPECT_THAT(response.error().message, HasSubstr(server_->url()));
  }
}

// A connection may end after any byte: abruptly, or orderly, as when the server's handler aborts.
TEST_P(TransportTest, AnAnswerThatIsCutAfterAnyByteIsNeverTakenForAWholeOne) {
  constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
  const std::vector<std::string> whole = {"one", "two", "end"};
  const std::string body = "one\ntwo\nend\n";
  const std::string with_length = std::string(kHead) + "Content-Length: 12\r\n\r\n" + body;
  const std::string chunked = std::string(kHead) + "Transfer-Encoding: chunked\r\n\r\n" +
                              "6\r\none\ntw\r\n6\r\no\nend\n\r\n0\r\n\r\n";
  for (const std::string& answer : {with_length, chunked}) {
    for (const bool in_order : {false, true}) {
      transport_.reset();
      Serve([answer, in_order](ServerConnection& connection, const ReceivedRequest& request) {
        const std::size_t cut = std::stoul(request.target.substr(1));
        connection.Write(std::string_view(answer).substr(0, cut));
        if (cut == answer.size()) return;
        in_order ? connection.CloseInOrder() : connection.CloseHalfWay();
      });
      for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
        SCOPED_TRACE(answer.substr(0, cut) + (in_order ? "<end>" : "<cut>"));
        const std::string target = "/" + std::to_string(cut);
        const auto begin = Clock::now();
        const auto response = Get(target);
        lines_.clear();
        const auto streamed = transport_->Stream(
            {.target = target, .deadline = 10s},
            [this](std::string_view line) {
              lines_.emplace_back(line);
              return true;
            },
            10s);
        EXPECT_LT(Clock::now() - begin, 8s) << "long before the deadline";
        if (cut == answer.size()) {
          EXPECT_TRUE(response && streamed);
        }
        for (const auto* each : {&response, &streamed}) {
          if (each->has_value()) {
            EXPECT_EQ((*each)->status, 200);
          } else {
            EXPECT_EQ(each->error().code, ErrorCode::kUnavailable) << each->error();
            EXPECT_THAT(each->error().message, HasSubstr(server_->url()));
          }
        }
        if (response) {
          EXPECT_EQ(response->body, body);
        }
        if (streamed) {
          EXPECT_EQ(lines_, whole);
        }
        EXPECT_EQ(std::ranges::mismatch(lines_, whole).in1, lines_.end())
            << "a partial line is not delivered";
      }
    }
  }
}

TEST_P(TransportTest, NonsenseIsUnavailable) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.Write("220 mail.example ESMTP\r\n\r\n");
    connection.CloseHalfWay();
  });
  EXPECT_EQ(Get().error().code, ErrorCode::kUnavailable);
}

TEST_P(TransportTest, TheDeadlineIsForTheWholeAnswer) {
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    if (request.target == "/drip") {
      connection.BeginChunked();
      while (connection.Chunk("x")) std::this_thread::sleep_for(20ms);
    }
    connection.WaitForClient();
  });
  for (const char* target : {"/silent", "/drip"}) {
    const auto begin = Clock::now();
    const auto response = Get(target, 300ms);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kTimeout) << target;
    EXPECT_LT(Clock::now() - begin, 5s) << target;
  }
}

TEST_P(TransportTest, AStreamMayBeQuietForItsIdleTimeButNoLonger) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    for (int i = 0; i < 8; ++i) {
      connection.Chunk("bookmark\n");
      std::this_thread::sleep_for(100ms);
    }
    connection.WaitForClient();
  });
  const auto begin = Clock::now();
  const auto response = Stream(/*idle=*/500ms);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(lines_.size(), 8u);
  EXPECT_GE(Clock::now() - begin, 1100ms);
}

// A stop request from another thread ends a request in each of its phases.
TEST_P(TransportTest, AStopRequestEndsItInEveryPhase) {
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    if (request.target != "/silent") {
      connection.BeginChunked();
      connection.Chunk("half of a li");
    }
    connection.WaitForClient();
  });
  // A server that accepts connections and never answers, so that the TLS handshake does not end.
  const Listening mute = Listen();
  Config mute_config = config_;
  mute_config.server = mute.url;
  const auto to_mute = MakeTransport(GetParam(), mute_config);
  ASSERT_TRUE(to_mute);

  const auto stopped = [&](const std::string& phase, auto request) {
    std::stop_source stop;
    std::jthread stopper([&] {
      std::this_thread::sleep_for(100ms);
      stop.request_stop();
    });
    const auto begin = Clock::now();
    const Result<HttpResponse> response = request(stop.get_token());
    EXPECT_LT(Clock::now() - begin, 5s) << phase << ": long before the deadline";
    ASSERT_FALSE(response) << phase;
    EXPECT_EQ(response.error().code, ErrorCode::kCancelled) << phase << ": " << response.error();
  };
  stopped("handshake",
          [&](std::stop_token stop) { return (*to_mute)->Send({.target = "/"}, stop); });
  stopped("head", [&](std::stop_token stop) { return Get("/silent", 10s, stop); });
  stopped("body", [&](std::stop_token stop) { return Get("/body", 10s, stop); });
  stopped("stream", [&](std::stop_token stop) { return Stream(10s, stop); });
  std::stop_source before;
  before.request_stop();
  EXPECT_EQ(Get("/silent", 10s, before.get_token()).error().code, ErrorCode::kCancelled);
  close(mute.descriptor);
}

TEST_P(TransportTest, AnAnswerThatIsLongerThanMaxBodyBytesIsAborted) {
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    if (request.target == "/fits") {
      connection.Answer(200, std::string(1000, 'x'));
      return;
    }
    connection.BeginChunked();
    while (connection.Chunk(std::string(1 << 16, 'x'))) continue;  // as long as the client reads
  });
  const auto get = [&](const std::string& target) {
    return transport_->Send({.target = target, .deadline = 10s, .max_body_bytes = 1000});
  };
  ASSERT_TRUE(get("/fits"));
  const auto response = get("/endless");
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(response.error().message, HasSubstr("longer than 1000 bytes"));
}

TEST_P(TransportTest, AConnectionThatTheServerClosedMeanwhileIsReplaced) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.Answer(200, "x");
    connection.CloseHalfWay();
  });
  // For a request with a body the library only reports that it was cut off: kUnavailable, may be
  // retried.
  for (int i = 0; i < 5; ++i) {
    const auto response = Get();
    ASSERT_TRUE(response) << response.error();
    std::this_thread::sleep_for(10ms);
  }
}

// Nothing of the request was sent on a kept connection that is dead: a write is done once, or not
// at all.
TEST_P(TransportTest, AWriteIsNotDoneTwiceBecauseTheServerHadClosedTheConnection) {
  std::atomic<int> done = 0;
  Serve([&](ServerConnection& connection, const ReceivedRequest&) {
    ++done;
    connection.Answer(201, "made");
    connection.CloseHalfWay();
  });
  int answered = 0;
  for (int i = 0; i < 10; ++i) {
    const auto response = Post("/pods");
    if (response) {
      ++answered;
    } else {
      EXPECT_EQ(response.error().code, ErrorCode::kUnavailable) << response.error();
    }
    EXPECT_EQ(done.load(), answered) << "request " << i;
    std::this_thread::sleep_for(i % 2 * 10ms);
  }
  EXPECT_GE(answered, 5) << "each answer leaves one dead connection behind";
}

// The server has received the request and closed the connection without an answer, so the client
// cannot know whether it was executed. On a connection that was used before, a library may retry
// once by itself.
TEST_P(TransportTest, AWriteThatIsCutOffIsSentOnceMoreAtMost) {
  std::atomic<int> sent = 0;
  Serve([&](ServerConnection& connection, const ReceivedRequest& request) {
    if (request.target == "/warm" || ++sent > 1) {
      connection.Answer(201, "made");
    } else {
      connection.CloseHalfWay();
    }
  });
  const auto first = Post("/pods");
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kUnavailable) << first.error();
  EXPECT_EQ(sent.load(), 1) << "a new connection is not retried";
  sent = 0;
  const auto warm = Post("/warm");
  ASSERT_TRUE(warm) << warm.error();
  const auto second = Post("/pods");
  EXPECT_EQ(sent.load(), second ? 2 : 1);
  if (!second) {
    EXPECT_EQ(second.error().code, ErrorCode::kUnavailable) << second.error();
  }
}

TEST_P(TransportTest, AHandshakeThatIsCutOffOrIsNoneIsUnavailable) {
  // The header announces the server's hello, but only its first byte arrives.
  constexpr std::string_view kHalfAHello("\x16\x03\x03\x00\x7a\x02", 6);
  constexpr std::string_view kNoTls = "HTTP/1.1 400 Bad Request\r\n\r\n";
  struct CutCase {
    std::string_view sent;
    bool reset;  // false: it closes orderly
  };
  for (const CutCase& cut : {CutCase{"", false}, CutCase{"", true}, CutCase{kHalfAHello, false},
                             CutCase{kHalfAHello, true}, CutCase{kNoTls, false}}) {
    const Listening listening = Listen();
    std::jthread server([&] {
      while (true) {
        const int client = accept4(listening.descriptor, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) return;
        // Closing with unread data causes a reset.
        char bytes[16384];
        std::ignore = recv(client, bytes, cut.reset ? std::size_t{1} : sizeof(bytes), 0);
        std::ignore = send(client, cut.sent.data(), cut.sent.size(), MSG_NOSIGNAL);
        close(client);
      }
    });
    config_.server = listening.url;
    config_.certificate_authority.text = authority_.pem();
    Connect();
    const auto begin = Clock::now();
    const auto response = Get();
    EXPECT_LT(Clock::now() - begin, 5s) << "long before the deadline";
    shutdown(listening.descriptor, SHUT_RDWR);
    server.join();
    close(listening.descriptor);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kUnavailable) << response.error();
    EXPECT_THAT(response.error().message,
                AllOf(HasSubstr(listening.url), Not(HasSubstr("certificate was refused"))));
  }
}

TEST_P(TransportTest, NobodyListens) {
  Serve([](ServerConnection&, const ReceivedRequest&) {});
  server_.reset();
  const auto response = Get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr(config_.server));
}

TEST_P(TransportTest, AServerOfAnotherAuthorityIsNotTrusted) {
  const TestAuthority other;
  Serve([](ServerConnection& connection, const ReceivedRequest&) { connection.Answer(200, "x"); });
  config_.certificate_authority.text = other.pem();
  Connect();
  const auto response = Get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("certificate was refused"));
}

TEST_P(TransportTest, AServerOfAnotherNameIsNotTrusted) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) { connection.Answer(200, "x"); },
        {.names = {"elsewhere.example", "10.0.0.1"}});
  const auto response = Get();
  ASSERT_FALSE(response);
  EXPECT_THAT(response.error().message, HasSubstr("not for this host name"));
}

TEST_P(TransportTest, AHostHeaderNamesWhomTheCertificateHasToBeFor) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) { connection.Answer(200, "x"); },
        {.names = {"coordinator"}});
  const auto get = [&](const std::string& host) {
    return transport_->Send({.target = "/", .headers = {{"Host", host}}, .deadline = 5s});
  };
  EXPECT_FALSE(get("127.0.0.1"));
  EXPECT_FALSE(get("another"));
  const auto response = get("coordinator");
  EXPECT_TRUE(response) << response.error();
}

TEST_P(TransportTest, ReloadsARotatedClientCertificate) {
  TempFolder folder;
  std::string seen;
  Serve(
      [&](ServerConnection& connection, const ReceivedRequest& request) {
        seen = request.client_name;
        connection.Answer(200, "x", "Connection: close\r\n");
        connection.CloseHalfWay();
      },
      {.client_certificate_required = true});
  const auto write = [&](const std::string& name) {
    const TestCertificate identity = authority_.Issue(name, {});
    config_.client_certificate.file = folder.Write("client.crt", identity.certificate_pem);
    config_.client_key.file = folder.Write("client.key", identity.key_pem);
  };
  write("first");
  Connect();
  ASSERT_TRUE(Get());
  EXPECT_EQ(seen, "first");
  write("second");
  ASSERT_TRUE(Get());
  EXPECT_EQ(seen, "second");
}

TEST_P(TransportTest, ReloadsARotatedAuthority) {
  const TempFolder folder;
  const TestAuthority other;
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.Answer(200, "x", "Connection: close\r\n");
    connection.CloseHalfWay();
  });
  const auto write = [&](const std::string& pem) { return folder.Write("ca.crt", pem); };
  config_.certificate_authority = {.text = "", .file = write(other.pem())};
  Connect();
  EXPECT_FALSE(Get()) << "another authority's certificates are trusted";
  write(other.pem() + authority_.pem());  // both, as during a rotation
  const auto both = Get();
  ASSERT_TRUE(both) << both.error();
  write(authority_.pem());
  const auto rotated = Get();
  ASSERT_TRUE(rotated) << rotated.error();
  write(other.pem());
  const auto refused = Get();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("certificate was refused"));
}

TEST_P(TransportTest, AMissingClientCertificateIsHintedAt) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) { connection.Answer(200, "x"); },
        {.client_certificate_required = true});
  const auto response = Get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, HasSubstr("client certificate"));
}

TEST_P(TransportTest, WrongCertificatesAreRefusedBeforeAnyRequest) {
  const TestCertificate identity = authority_.Issue("me", {});
  const TestCertificate other = authority_.Issue("other", {});
  struct WrongCase {
    std::string authority, certificate, key, sentence;
  };
  for (const WrongCase& test :
       {WrongCase{"", "", "", "no certificate in the certificate authority"},
        WrongCase{"text", "", "", "no certificate in the certificate authority"},
        WrongCase{authority_.pem(), "text", identity.key_pem, "client certificate"},
        WrongCase{authority_.pem(), identity.certificate_pem, "text", "client key is no PEM"},
        WrongCase{authority_.pem(), identity.certificate_pem, other.key_pem,
                  "does not belong to the client certificate"}}) {
    Config config{.server = "https://127.0.0.1:1",
                  .certificate_authority = {.text = test.authority, .file = ""},
                  .client_certificate = {.text = test.certificate, .file = ""},
                  .client_key = {.text = test.key, .file = ""}};
    const auto made = MakeTransport(GetParam(), config);
    ASSERT_FALSE(made) << test.sentence;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(made.error().message, HasSubstr(test.sentence));
  }
}

TEST_P(TransportTest, ATargetThatIsNoUriIsAnError) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) { connection.Answer(200, "x"); });
  EXPECT_FALSE(Get("/pods with spaces\r\nX: y"));
}

TEST_P(TransportTest, ManyCallersAtOnceGetTheirOwnAnswers) {
  Serve([](ServerConnection& connection, const ReceivedRequest& request) {
    connection.Answer(200, request.target);
  });
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 8; ++caller) {
      callers.emplace_back([&, caller] {
        for (int i = 0; i < 50; ++i) {
          const std::string target = "/" + std::to_string(caller) + "/" + std::to_string(i);
          const auto response = Get(target);
          if (response && response->body == target) ++right;
        }
      });
    }
  }
  EXPECT_EQ(right, 8 * 50);
}

int OpenFiles() {
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++files;
  }
  return files;
}

// Resident memory of this process, which includes the server.
std::size_t MemoryInUse() {
  std::ifstream status("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  status >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST_P(TransportTest, AThousandReconnectsLeaveNeitherFilesNorMemoryBehind) {
  Serve([](ServerConnection& connection, const ReceivedRequest&) {
    connection.BeginChunked();
    connection.Chunk("line\n");
    connection.WaitForClient();
  });
  const auto watch = [&] {
    return transport_->Stream({.target = "/"}, [](std::string_view) { return false; }, 10s);
  };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(watch());
  const auto files = [&] { return OpenFiles() - server_->open_connections(); };
  const int files_before = files();
  const std::size_t memory_before = MemoryInUse();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(watch());
  for (int i = 0; i < 100 && files() > files_before + 3; ++i) std::this_thread::sleep_for(20ms);
  EXPECT_LE(files(), files_before + 3);
  // A kept connection would hold more than 20 KiB.
  EXPECT_LT(MemoryInUse(), memory_before + (std::size_t{6} << 20));
  EXPECT_GT(server_->connections(), 1000);
}

}  // namespace
}  // namespace pliant::kube
