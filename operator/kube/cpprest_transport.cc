#include "operator/kube/cpprest_transport.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <cpprest/astreambuf.h>
#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include "operator/kube/client_tls.h"
#include "operator/kube/line_splitter.h"

namespace pliant::kube {
namespace {

namespace streams = concurrency::streams;
using std::chrono::steady_clock;

// The library's threads only move bytes; what may take long runs on the callers' threads.
constexpr int kThreads = 4;
// Bytes of an answer that wait for the caller; then the library stops reading from the socket.
constexpr std::size_t kWaitingBytesMax = std::size_t{1} << 20;
// A cancelled request ends at once, but for one that waits for the resolver, which cannot be called
// back: that one is left behind.
constexpr auto kCancelGrace = std::chrono::seconds(1);
// Ours are the deadlines. The library's own is an idle time, and only a net below them.
constexpr auto kLibraryTimeout = std::chrono::hours(1);

struct Head {
  int status = 0;
  HttpHeaders headers;
};

// What the library's threads and the caller of one request share.
class Exchange {
 public:
  enum class Event { kHead, kBytes, kEnd, kTimeout, kStopped };

  // The library's side.

  void SetHead(Head head) {
    Change([&] { head_ = std::move(head); });
  }
  void SetEnd(std::optional<std::string> failure) {
    Change([&] {
      ended_ = true;
      failure_ = std::move(failure);
    });
  }
  // The task ends when there is room for more.
  pplx::task<std::size_t> Write(const char* bytes, std::size_t count) {
    pplx::task<std::size_t> room = pplx::task_from_result(count);
    Change([&] {
      if (left_behind_) return;
      waiting_.append(bytes, count);
      if (waiting_.size() < kWaitingBytesMax) return;
      blocked_.emplace(count, pplx::task_completion_event<std::size_t>());
      room = pplx::create_task(blocked_->second);
    });
    return room;
  }

  // The caller's side.

  // The next thing that happened: first the head, then bytes, then the end (which may also come
  // first).
  Event Next(steady_clock::time_point deadline, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    const auto happened = [this] {
      return ended_ || (head_ && (!head_taken_ || !waiting_.empty()));
    };
    const bool any = changed_.wait_until(lock, stop, deadline, happened);
    // Also when there is always something: a flood must not outlive its time.
    if (stop.stop_requested()) return Event::kStopped;
    if (!any || (!ended_ && steady_clock::now() >= deadline)) return Event::kTimeout;
    if (head_ && !head_taken_) return Event::kHead;
    return !waiting_.empty() ? Event::kBytes : Event::kEnd;
  }
  Head TakeHead() {
    const std::lock_guard lock(mutex_);
    head_taken_ = true;
    return *head_;
  }
  std::string TakeBytes() {
    std::optional<Blocked> blocked;
    std::string bytes;
    {
      const std::lock_guard lock(mutex_);
      bytes = std::exchange(waiting_, {});
      blocked = std::exchange(blocked_, std::nullopt);
    }
    if (blocked) blocked->second.set(blocked->first);
    return bytes;
  }
  std::optional<std::string> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  // What still comes is dropped.
  void LeaveBehind() {
    {
      const std::lock_guard lock(mutex_);
      left_behind_ = true;
    }
    TakeBytes();
  }
  void WaitForEnd(steady_clock::duration limit) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [this] { return ended_; });
  }

 private:
  using Blocked = std::pair<std::size_t, pplx::task_completion_event<std::size_t>>;

  void Change(auto change) {
    {
      const std::lock_guard lock(mutex_);
      change();
    }
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // All guarded by mutex_.
  std::optional<Head> head_;
  bool head_taken_ = false;
  std::string waiting_;
  std::optional<Blocked> blocked_;
  bool ended_ = false;
  std::optional<std::string> failure_;
  bool left_behind_ = false;
};

// Where the library writes the body of an answer: the default one has no limit, and reading lines
// from it is twenty times slower.
class BodyBuffer final : public streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  explicit BodyBuffer(std::shared_ptr<Exchange> exchange)
      : streambuf_state_manager(std::ios_base::out), exchange_(std::move(exchange)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return traits::eof(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return traits::eof(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return traits::eof();
  }
  bool acquire(std::uint8_t*&, std::size_t&) override { return false; }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  using streambuf_state_manager::_putn;
  pplx::task<int_type> _putc(std::uint8_t byte) override {
    const auto c = static_cast<char>(byte);
    return exchange_->Write(&c, 1).then([byte](std::size_t) { return int_type{byte}; });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t* bytes, std::size_t count) override {
    return exchange_->Write(reinterpret_cast<const char*>(bytes), count);
  }
  pplx::task<int_type> _bumpc() override { return Eof(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return Eof(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return Eof(); }
  pplx::task<int_type> _ungetc() override { return Eof(); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override {
    return pplx::task_from_result(std::size_t{0});
  }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

 private:
  static pplx::task<int_type> Eof() { return pplx::task_from_result(int_type{traits::eof()}); }

  const std::shared_ptr<Exchange> exchange_;
};

class BodyStream final : public streams::streambuf<std::uint8_t> {
 public:
  explicit BodyStream(std::shared_ptr<Exchange> exchange)
      : streambuf(std::make_shared<BodyBuffer>(std::move(exchange))) {}
};

Head HeadOf(const web::http::http_response& response) {
  Head head{.status = response.status_code(), .headers = {}};
  for (const auto& [name, value] : response.headers()) head.headers.emplace(name, value);
  return head;
}

web::http::http_request ToLibrary(const HttpRequest& request,
                                  const std::shared_ptr<Exchange>& exchange) {
  web::http::http_request made{std::string(ToString(request.method))};
  made.set_request_uri(request.target);
  std::string content_type = "application/json";
  for (const auto& [name, value] : request.headers) {
    if (LessIgnoringCase less; !less(name, "Content-Type") && !less("Content-Type", name)) {
      content_type = value;
    } else {
      made.headers().add(name, value);
    }
  }
  if (!request.body.empty()) made.set_body(request.body, content_type);
  made.set_response_stream(BodyStream(exchange).create_ostream());
  return made;
}

// Ends of tasks arrive here, on the library's threads. Each task's exception has to be looked at:
// the library aborts the program for one that nobody saw.
void Begin(web::http::client::http_client& client, const HttpRequest& request,
           const std::shared_ptr<Exchange>& exchange, const pplx::cancellation_token& cancelled) {
  const pplx::task_options not_cancelled{pplx::cancellation_token::none()};
  const auto on_end = [exchange](const pplx::task<web::http::http_response>& body) {
    try {
      body.get();
      exchange->SetEnd(std::nullopt);
    } catch (const std::exception& error) {
      exchange->SetEnd(error.what());
    }
  };
  const auto on_head = [exchange, on_end,
                        not_cancelled](const pplx::task<web::http::http_response>& head) {
    try {
      const web::http::http_response response = head.get();
      exchange->SetHead(HeadOf(response));
      response.content_ready().then(on_end, not_cancelled);
    } catch (const std::exception& error) {
      exchange->SetEnd(error.what());
    }
  };
  try {
    client.request(ToLibrary(request, exchange), cancelled).then(on_head, not_cancelled);
  } catch (const std::exception& error) {
    exchange->SetEnd(error.what());  // a target that is no URI
  }
}

// Before the library starts its threads by itself, of which there would be 40.
void StartThreadsOnce() {
  static std::once_flag once;
  std::call_once(once, [] { crossplat::threadpool::initialize_with_threads(kThreads); });
}

}  // namespace

struct CpprestTransport::Clients {
  Clients(const Config& config, web::http::client::http_client_config options)
      : server(config.server),
        tls(std::make_shared<ClientTls>(config)),
        calls(config.server, WithTls(options)),
        watches(config.server, WithTls(options)) {}

  web::http::client::http_client_config WithTls(web::http::client::http_client_config options) {
    // The library keeps this function, and so `tls`, for as long as one of its connections lives:
    // requests that were left behind may outlive this object.
    options.set_ssl_context_callback([tls = tls](boost::asio::ssl::context& context) {
      // An exception is the library's way to refuse a connection.
      if (const Status applied = tls->Apply(context.native_handle()); !applied) {
        throw std::runtime_error(applied.error().message);
      }
    });
    return options;
  }

  // One request from its beginning to the end of its answer. `sink` may be null: then all bytes go
  // to the response.
  Result<HttpResponse> Run(web::http::client::http_client& client, const HttpRequest& request,
                           const LineSink* sink, Duration idle, const std::stop_token& stop);

  Error Explain(std::string failure) const;

  const std::string server;
  const std::shared_ptr<ClientTls> tls;  // before the clients, which share it
  web::http::client::http_client calls;
  web::http::client::http_client watches;  // of their own: they hold their connections for minutes
};

Result<HttpResponse> CpprestTransport::Clients::Run(web::http::client::http_client& client,
                                                    const HttpRequest& request,
                                                    const LineSink* sink, Duration idle,
                                                    const std::stop_token& stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  const auto exchange = std::make_shared<Exchange>();
  pplx::cancellation_token_source cancel;
  const auto give_up = [&](Result<HttpResponse> result) {
    // Both from this thread: cancelling from one of the library's own may dead-lock it.
    exchange->LeaveBehind();
    cancel.cancel();
    exchange->WaitForEnd(kCancelGrace);
    return result;
  };

  HttpResponse response;
  bool streaming = false;
  std::optional<LineSplitter> lines;
  if (sink != nullptr) lines.emplace(*sink, kLineBytesMax);
  const auto total_deadline = steady_clock::now() + request.deadline;
  Begin(client, request, exchange, cancel.get_token());
  while (true) {
    const auto deadline = streaming ? steady_clock::now() + idle : total_deadline;
    switch (exchange->Next(deadline, stop)) {
      case Exchange::Event::kHead: {
        Head head = exchange->TakeHead();
        streaming = lines && head.status / 100 == 2;
        response.status = head.status;
        response.headers = std::move(head.headers);
        if (streaming && request.on_open) request.on_open();
        break;
      }
      case Exchange::Event::kBytes:
        if (streaming) {
          const LineSplitter::Outcome outcome = lines->Feed(exchange->TakeBytes());
          if (outcome == LineSplitter::Outcome::kMore) break;
          if (outcome == LineSplitter::Outcome::kStopped) return give_up(std::move(response));
          return give_up(Invalid(server + ": a line of the answer is longer than " +
                                 std::to_string(kLineBytesMax) + " bytes"));
        }
        response.body += exchange->TakeBytes();
        if (response.body.size() > kBodyBytesMax) {
          return give_up(Invalid(server + ": the answer is longer than " +
                                 std::to_string(kBodyBytesMax) + " bytes"));
        }
        break;
      case Exchange::Event::kEnd:
        if (std::optional<std::string> failure = exchange->failure()) {
          return std::unexpected(Explain(*std::move(failure)));
        }
        if (streaming) lines->Finish();
        return response;
      case Exchange::Event::kTimeout:
        return give_up(
            Fail(ErrorCode::kTimeout, server + (streaming ? ": nothing came for too long"
                                                          : ": no answer before the deadline")));
      case Exchange::Event::kStopped:
        return give_up(Fail(ErrorCode::kCancelled, "stopped"));
    }
  }
}

Error CpprestTransport::Clients::Explain(std::string failure) const {
  std::string sentence = server + ": " + failure;
  if (failure.find("SSL handshake") != std::string::npos) {
    const std::string refusal = tls->last_refusal();
    if (!refusal.empty()) sentence += " (the server's certificate was refused: " + refusal + ")";
  } else if (failure.find("HTTP status line") != std::string::npos) {
    sentence +=
        " (the server closed the connection; over TLS 1.3 that is also how it refuses a client "
        "certificate, or the lack of one)";
  }
  return {ErrorCode::kUnavailable, std::move(sentence)};
}

Result<std::unique_ptr<CpprestTransport>> CpprestTransport::Make(const Config& config) {
  StartThreadsOnce();
  web::http::client::http_client_config options;
  options.set_timeout(kLibraryTimeout);
  options.set_max_redirects(0);  // it would take the bearer token along to any other origin
  try {
    auto clients = std::make_unique<Clients>(config, options);
    if (config.server.starts_with("https://")) {
      boost::asio::ssl::context trial(boost::asio::ssl::context::tls_client);
      RETURN_IF_ERROR(clients->tls->Apply(trial.native_handle()));
    }
    return std::unique_ptr<CpprestTransport>(new CpprestTransport(std::move(clients)));
  } catch (const std::exception& error) {
    return Invalid("server " + config.server + ": " + error.what());
  }
}

CpprestTransport::CpprestTransport(std::unique_ptr<Clients> clients)
    : clients_(std::move(clients)) {}
CpprestTransport::~CpprestTransport() = default;

Result<HttpResponse> CpprestTransport::Send(const HttpRequest& request, std::stop_token stop) {
  return clients_->Run(clients_->calls, request, nullptr, Duration::zero(), stop);
}

Result<HttpResponse> CpprestTransport::Stream(const HttpRequest& request, const LineSink& sink,
                                              Duration idle, std::stop_token stop) {
  return clients_->Run(clients_->watches, request, &sink, idle, stop);
}

}  // namespace pliant::kube
