#include "operator/kube/cpprest_transport.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <cpprest/astreambuf.h>
#include <cpprest/http_client.h>
#include <pplx/threadpool.h>

#include "operator/kube/client_tls.h"
#include "operator/kube/http_exchange.h"

namespace pliant::kube {
namespace {

namespace streams = concurrency::streams;

// The library's thread only moves bytes; slow work runs on the callers' threads. It is one, because
// the library closes the socket of a cancelled request while another of its threads may be within
// an operation on it, which crashes the process.
constexpr int kThreads = 1;
// We enforce the deadlines. The library's timeout is an idle time and only a safety net.
constexpr auto kLibraryTimeout = std::chrono::hours(1);

// The buffer into which the library writes the body of an answer. Its default buffer has no limit,
// and reading lines from it is 20 times slower.
class BodyBuffer final : public streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  explicit BodyBuffer(std::shared_ptr<HttpExchange> exchange)
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
    return Write(&byte, 1).then([byte](std::size_t) { return int_type{byte}; });
  }
  pplx::task<std::size_t> _putn(const std::uint8_t* bytes, std::size_t count) override {
    return Write(bytes, count);
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

  // The task ends when there is room for more.
  pplx::task<std::size_t> Write(const std::uint8_t* bytes, std::size_t count) {
    if (exchange_->Write({reinterpret_cast<const char*>(bytes), count})) {
      return pplx::task_from_result(count);
    }
    const pplx::task_completion_event<std::size_t> room;
    exchange_->OnRoom([room, count] { room.set(count); });
    return pplx::create_task(room);
  }

  const std::shared_ptr<HttpExchange> exchange_;
};

class BodyStream final : public streams::streambuf<std::uint8_t> {
 public:
  explicit BodyStream(std::shared_ptr<HttpExchange> exchange)
      : streambuf(std::make_shared<BodyBuffer>(std::move(exchange))) {}
};

HttpHeaders HeadersOf(const web::http::http_response& response) {
  HttpHeaders headers;
  for (const auto& [name, value] : response.headers()) headers.emplace(name, value);
  return headers;
}

web::http::http_request ToLibrary(const HttpRequest& request,
                                  const std::shared_ptr<HttpExchange>& exchange) {
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

// Tasks complete here, on the library's thread. Each task's exception must be observed: the
// library aborts the program for an unobserved one.
void Begin(web::http::client::http_client& client, const HttpRequest& request,
           const std::shared_ptr<HttpExchange>& exchange,
           const pplx::cancellation_token& cancelled) {
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
      exchange->SetHead(response.status_code(), HeadersOf(response));
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

Status CheckSupported(const Config& config) {
  if (config.server.contains("://[")) {
    return Invalid(
        "server '" + config.server +
        "' is an IPv6 literal: use a name that resolves to it, or the transport libcurl");
  }
  if (!config.proxy_url.empty()) {
    return Invalid("proxy-url of a cluster is supported by the transport libcurl only");
  }
  return {};
}

// Must run before the library starts its own threads: it would start 40.
void StartThreadOnce() {
  static std::once_flag once;
  std::call_once(once, [] { crossplat::threadpool::initialize_with_threads(kThreads); });
}

}  // namespace

struct CpprestTransport::Clients {
  using Client = web::http::client::http_client;

  using Options = web::http::client::http_client_config;

  Clients(const Config& config, const Options& options)
      : server(config.server),
        tls(config),
        calls(server, WithTls(options)),
        watches(server, WithTls(options)) {}

  // The library keeps this function, and thus `refusal`, as long as one of its connections lives:
  // abandoned requests may outlive this object.
  Options WithTls(Options options) const {
    options.set_ssl_context_callback(
        [tls = tls, refusal = refusal](boost::asio::ssl::context& context) {
          // The library rejects a connection when this throws.
          if (const Status applied = tls.Apply(context.native_handle(), "", *refusal); !applied) {
            throw std::runtime_error(applied.error().message);
          }
        });
    return options;
  }

  // Runs one request to the end of its answer. If `sink` is null, all bytes go to the response.
  Result<HttpResponse> Run(Client& client, const HttpRequest& request, const LineSink* sink,
                           Duration idle, const std::stop_token& stop);

  Error Explain(std::string failure) const;

  const std::string server;
  const ClientTls tls;
  // For the connection that was opened last.
  const std::shared_ptr<TlsRefusal> refusal = std::make_shared<TlsRefusal>();
  Client calls;
  Client watches;  // a separate client: it holds its connections for minutes
};

Result<HttpResponse> CpprestTransport::Clients::Run(Client& client, const HttpRequest& request,
                                                    const LineSink* sink, Duration idle,
                                                    const std::stop_token& stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  const auto exchange = std::make_shared<HttpExchange>();
  pplx::cancellation_token_source cancel;
  Begin(client, request, exchange, cancel.get_token());
  return exchange->Follow(
      {.request = request,
       .sink = sink,
       .idle = idle,
       .stop = stop,
       .server = server,
       // On the library's thread, between two operations on the socket.
       .cancel =
           [cancel] {
             boost::asio::post(crossplat::threadpool::shared_instance().service(),
                               [cancel] { cancel.cancel(); });
           },
       .explain = [this](std::string failure) { return Explain(std::move(failure)); }});
}

Error CpprestTransport::Clients::Explain(std::string failure) const {
  std::string sentence = server + ": " + failure;
  if (failure.find("SSL handshake") != std::string::npos) {
    const std::string reason = refusal->Get();
    if (!reason.empty()) sentence += " (the server's certificate was refused: " + reason + ")";
  } else if (failure.find("HTTP status line") != std::string::npos) {
    sentence += kClosedWithoutAnswer;
  }
  return {ErrorCode::kUnavailable, std::move(sentence)};
}

Result<std::unique_ptr<CpprestTransport>> CpprestTransport::Make(const Config& config) {
  RETURN_IF_ERROR(CheckSupported(config));
  StartThreadOnce();
  web::http::client::http_client_config options;
  options.set_timeout(kLibraryTimeout);
  options.set_max_redirects(0);  // it would send the bearer token to any other origin
  try {
    auto clients = std::make_unique<Clients>(config, options);
    if (config.server.starts_with("https://")) {
      boost::asio::ssl::context trial(boost::asio::ssl::context::tls_client);
      RETURN_IF_ERROR(clients->tls.Apply(trial.native_handle(), "", *clients->refusal));
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
