#include "operator/kube/libcurl_transport.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <curl/curl.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "operator/kube/client_tls.h"
#include "operator/kube/free.h"
#include "operator/kube/http_exchange.h"

namespace pliant::kube {
namespace {

// Maximum of idle connections kept; the library itself closes those idle for two minutes.
constexpr long kConnectionsKept = 32;
constexpr long kConnectionsKeptOfMany = 1024;  // one per server
constexpr int kPollMilliseconds = 10'000;

// TCP keepalive: an idle connection is probed, and closed after kMaxProbes probes without an
// answer. Without it, a watch on a path that drops packets stays silent until its idle time ends.
constexpr long kProbeAfterSeconds = 15;
constexpr long kProbeEverySeconds = 5;
constexpr long kMaxProbes = 3;

using Easy = std::unique_ptr<CURL, Free<curl_easy_cleanup>>;
using Multi = std::unique_ptr<CURLM, Free<curl_multi_cleanup>>;
using Headers = std::unique_ptr<curl_slist, Free<curl_slist_free_all>>;

void Add(Headers& list, const std::string& text) {
  curl_slist* longer = curl_slist_append(list.get(), text.c_str());
  CHECK(longer != nullptr, "no memory");
  std::ignore = list.release();
  list.reset(longer);
}

void Set(const Easy& easy, CURLoption option, auto value) {
  const CURLcode set = curl_easy_setopt(easy.get(), option, value);
  CHECK(set == CURLE_OK, curl_easy_strerror(set));
}

// One request. Its loop owns it from Begin to its end.
struct Transfer {
  explicit Transfer(const ClientTls& client_tls) : tls(client_tls) {}

  const std::shared_ptr<HttpExchange> exchange = std::make_shared<HttpExchange>();
  const ClientTls& tls;
  TlsRefusal refusal;  // of the connection opened for it, if one was opened
  std::string body;    // of the request
  Headers headers;     // of the request
  Headers connect_to;  // the server's address, if it differs from its name
  // The server's name. We check it, because the library checks it only after the handshake.
  std::string server_name;
  char failure[CURL_ERROR_SIZE] = "";
  std::function<void()> resume;  // makes the loop continue reading
  // The following are for the loop's thread only:
  int status = 0;
  HttpHeaders answer_headers;
  bool head_complete = false;
  std::string tls_failure;  // error of our own certificates
  bool resting = false;
  Easy easy;  // last: it uses the rest
};

// The thread that transfers requests, and their connections.
class Loop {
 public:
  explicit Loop(long connections_kept) : multi_(curl_multi_init()) {
    CHECK(multi_ != nullptr, "no memory");
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, connections_kept);
    curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  ~Loop() {
    thread_.request_stop();
    curl_multi_wakeup(multi_.get());
    thread_.join();
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Any thread. Each transfer's exchange gets SetEnd when the transfer ends.
  void Begin(std::shared_ptr<Transfer> transfer) {
    Post([this, transfer = std::move(transfer)] {
      CURL* const easy = transfer->easy.get();
      transfers_.emplace(easy, transfer);
      if (const CURLMcode added = curl_multi_add_handle(multi_.get(), easy); added != CURLM_OK) {
        End(easy, curl_multi_strerror(added));
      }
    });
  }
  void Cancel(const std::shared_ptr<Transfer>& transfer) {
    Post([this, easy = transfer->easy.get()] { End(easy, "cancelled"); });
  }
  void Resume(const std::shared_ptr<Transfer>& transfer) {
    Post([this, transfer] {
      if (!transfers_.contains(transfer->easy.get())) return;
      transfer->resting = false;
      curl_easy_pause(transfer->easy.get(), CURLPAUSE_CONT);
    });
  }

 private:
  void Post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    curl_multi_wakeup(multi_.get());
  }

  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      RunTasks();
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      TakeEnds();
      curl_multi_poll(multi_.get(), nullptr, 0, kPollMilliseconds, nullptr);
    }
    while (!transfers_.empty()) End(transfers_.begin()->first, "cancelled");
  }

  void RunTasks() {
    std::vector<std::function<void()>> tasks;
    {
      const std::lock_guard lock(mutex_);
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task();
  }

  void TakeEnds() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* const easy = message->easy_handle;
      const CURLcode result = message->data.result;
      if (result == CURLE_OK) {
        End(easy, std::nullopt);
        continue;
      }
      const Transfer& transfer = *transfers_.at(easy);
      std::string failure = curl_easy_strerror(result);
      if (transfer.failure[0] != '\0') failure += std::string(": ") + transfer.failure;
      if (!transfer.tls_failure.empty()) failure = transfer.tls_failure;
      End(easy, std::move(failure));
    }
  }

  void End(CURL* easy, std::optional<std::string> failure) {
    const auto found = transfers_.find(easy);
    if (found == transfers_.end()) return;  // it ended before it was cancelled
    const std::shared_ptr<Transfer> transfer = found->second;
    transfers_.erase(found);
    curl_multi_remove_handle(multi_.get(), easy);
    transfer->exchange->SetEnd(std::move(failure));
  }

  const Multi multi_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;              // guarded by mutex_
  std::map<CURL*, std::shared_ptr<Transfer>> transfers_;  // the loop's thread only
  std::jthread thread_;  // last: joined before the rest is destroyed
};

// Handles one line of a head. Each status line begins a new head: heads of 1xx answers are skipped,
// and libcurl does not pass on those of proxies.
std::size_t OnHeader(const char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(bytes, size * count);
  if (transfer.head_complete) return line.size();  // trailers
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    const std::string_view code = line.substr(std::min(line.find(' ') + 1, line.size()));
    std::from_chars(code.data(), code.data() + code.size(), transfer.status);
    transfer.answer_headers.clear();
  } else if (line.empty()) {
    if (transfer.status < 200) return size * count;
    transfer.head_complete = true;
    transfer.exchange->SetHead(transfer.status, std::move(transfer.answer_headers));
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    transfer.answer_headers.emplace(line.substr(0, colon),
                                    begin == std::string_view::npos ? "" : line.substr(begin));
  }
  return size * count;
}

std::size_t OnBytes(const char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.resting) return CURL_WRITEFUNC_PAUSE;  // libcurl passes these bytes again later
  if (!transfer.exchange->Write({bytes, size * count})) {
    transfer.resting = true;
    transfer.exchange->OnRoom(transfer.resume);
  }
  return size * count;
}

CURLcode OnTlsContext(CURL*, void* context, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const Status applied =
      transfer.tls.Apply(static_cast<SSL_CTX*>(context), transfer.server_name, transfer.refusal);
  if (!applied) transfer.tls_failure = applied.error().message;
  return applied ? CURLE_OK : CURLE_SSL_CERTPROBLEM;
}

void StartLibraryOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "libcurl does not start");
  });
}

}  // namespace

// The loop shared by transports with the same trust and identity, to one server or to many.
class LibcurlTransport::Connections {
 public:
  Connections(const Config& config, bool to_many) : many_servers(to_many), tls_(config) {}

  std::shared_ptr<Loop> CurrentLoop();
  void Retire(const std::shared_ptr<Loop>& loop);
  Status CheckTls() {
    const std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> trial(SSL_CTX_new(TLS_client_method()));
    TlsRefusal unused;
    return tls_.Apply(trial.get(), "", unused);
  }
  const ClientTls& tls() const { return tls_; }

  const bool many_servers;

 private:
  const ClientTls tls_;  // outlives the loops, whose connections use it
  std::mutex mutex_;
  std::shared_ptr<Loop> loop_;  // guarded by mutex_
};

class LibcurlTransport::Server {
 public:
  Server(const Config& config, std::shared_ptr<Connections> connections)
      : config_(config), connections_(std::move(connections)) {}

  // Runs one request to the end of its answer. If `sink` is null, all bytes go to the response.
  Result<HttpResponse> Run(const HttpRequest& request, const LineSink* sink, Duration idle,
                           const std::stop_token& stop);

 private:
  std::shared_ptr<Transfer> MakeTransfer(const HttpRequest& request) const;
  // `refusal`: why the server's certificate was rejected; "" if it was not.
  Error Explain(std::string failure, std::string refusal) const;

  const Config config_;
  const std::shared_ptr<Connections> connections_;
};

std::shared_ptr<Loop> LibcurlTransport::Connections::CurrentLoop() {
  const std::lock_guard lock(mutex_);
  if (loop_ == nullptr) {
    loop_ = std::make_shared<Loop>(many_servers ? kConnectionsKeptOfMany : kConnectionsKept);
  }
  return loop_;
}

// No new request uses the loop's connections. The loop ends with the last request in flight.
void LibcurlTransport::Connections::Retire(const std::shared_ptr<Loop>& loop) {
  const std::lock_guard lock(mutex_);
  if (loop_ == loop) loop_.reset();
}

std::shared_ptr<Transfer> LibcurlTransport::Server::MakeTransfer(const HttpRequest& request) const {
  auto transfer = std::make_shared<Transfer>(connections_->tls());
  transfer->body = request.body;
  transfer->easy.reset(curl_easy_init());
  const Easy& easy = transfer->easy;
  CHECK(easy != nullptr, "no memory");

  // The URL has the name that the certificate must be for; the connection still goes to the
  // server's address.
  std::string authority = config_.server.substr(config_.server.find("://") + 3);
  const std::string scheme = config_.server.substr(0, config_.server.find("://") + 3);
  if (const auto host = request.headers.find("Host"); host != request.headers.end()) {
    Add(transfer->connect_to, "::" + authority);
    transfer->server_name = host->second;
    const std::size_t port = authority.rfind(':');
    authority =
        host->second +
        (port == std::string::npos || authority.ends_with(']') ? "" : authority.substr(port));
    Set(easy, CURLOPT_CONNECT_TO, transfer->connect_to.get());
  }
  Set(easy, CURLOPT_URL, (scheme + authority + request.target).c_str());
  Set(easy, CURLOPT_PATH_AS_IS, 1L);
  Set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(easy, CURLOPT_FOLLOWLOCATION, 0L);  // it would forward the bearer token
  // With many servers a connection carries one request at a time: an aborted request closes its
  // connection without affecting the others.
  Set(easy, CURLOPT_HTTP_VERSION,
      static_cast<long>(connections_->many_servers ? CURL_HTTP_VERSION_1_1
                                                   : CURL_HTTP_VERSION_2TLS));
  // wait for the connection being opened, rather than open a second one
  Set(easy, CURLOPT_PIPEWAIT, 1L);

  Set(easy, CURLOPT_CUSTOMREQUEST, std::string(ToString(request.method)).c_str());
  const bool may_have_body = request.method != HttpMethod::kGet;
  if (!request.body.empty() || may_have_body) {
    Set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->body.size()));
    Set(easy, CURLOPT_POSTFIELDS, transfer->body.c_str());
    Add(transfer->headers, "Expect:");  // send the body without waiting for "100 Continue"
    if (!request.headers.contains("Content-Type")) {
      Add(transfer->headers, "Content-Type: application/json");
    }
  }
  for (const auto& [name, value] : request.headers) Add(transfer->headers, name + ": " + value);
  Set(easy, CURLOPT_HTTPHEADER, transfer->headers.get());

  // Our own callback sets the trusted certificates and the client's certificate.
  Set(easy, CURLOPT_CAINFO, static_cast<const char*>(nullptr));
  Set(easy, CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  Set(easy, CURLOPT_SSL_CTX_FUNCTION, &OnTlsContext);
  Set(easy, CURLOPT_SSL_CTX_DATA, static_cast<void*>(transfer.get()));
  Set(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L);  // a resumed session would keep an old certificate

  if (!config_.proxy_url.empty()) {
    Set(easy, CURLOPT_PROXY, config_.proxy_url.c_str());
    Set(easy, CURLOPT_NOPROXY, "");  // the configured proxy is used regardless of $NO_PROXY
  } else if (!config_.proxy_from_environment) {
    Set(easy, CURLOPT_PROXY, "");
  }
  Set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);

  Set(easy, CURLOPT_NOSIGNAL, 1L);
  Set(easy, CURLOPT_QUICK_EXIT, 1L);  // a cancelled request does not wait for the resolver
  Set(easy, CURLOPT_CONNECTTIMEOUT_MS, 0L);
  Set(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(easy, CURLOPT_TCP_KEEPIDLE, kProbeAfterSeconds);
  Set(easy, CURLOPT_TCP_KEEPINTVL, kProbeEverySeconds);
  Set(easy, CURLOPT_TCP_KEEPCNT, kMaxProbes);
  Set(easy, CURLOPT_ERRORBUFFER, transfer->failure);
  Set(easy, CURLOPT_HEADERFUNCTION, &OnHeader);
  Set(easy, CURLOPT_HEADERDATA, static_cast<void*>(transfer.get()));
  Set(easy, CURLOPT_WRITEFUNCTION, &OnBytes);
  Set(easy, CURLOPT_WRITEDATA, static_cast<void*>(transfer.get()));
  return transfer;
}

Result<HttpResponse> LibcurlTransport::Server::Run(const HttpRequest& request, const LineSink* sink,
                                                   Duration idle, const std::stop_token& stop) {
  if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "stopped");
  const std::shared_ptr<Loop> loop = connections_->CurrentLoop();
  const std::shared_ptr<Transfer> transfer = MakeTransfer(request);
  // Not called after Follow, below, has returned, so that the reference to the loop is valid.
  transfer->resume = [&loop = *loop, going_on = std::weak_ptr(transfer)] {
    if (const auto resumed = going_on.lock()) loop.Resume(resumed);
  };
  loop->Begin(transfer);
  Result<HttpResponse> response =
      transfer->exchange->Follow({.request = request,
                                  .sink = sink,
                                  .idle = idle,
                                  .stop = stop,
                                  .server = config_.server,
                                  .cancel = [&] { loop->Cancel(transfer); },
                                  .explain =
                                      [&](std::string failure) {
                                        return Explain(std::move(failure), transfer->refusal.Get());
                                      }});
  // A connection that was silent until the timeout may be dead: do not reuse it.
  if (!response && response.error().code == ErrorCode::kTimeout && !connections_->many_servers) {
    connections_->Retire(loop);
  }
  return response;
}

Error LibcurlTransport::Server::Explain(std::string failure, std::string refusal) const {
  std::string sentence = config_.server + ": " + failure;
  const bool wrong_name = failure.starts_with(curl_easy_strerror(CURLE_PEER_FAILED_VERIFICATION));
  const bool no_handshake = failure.starts_with(curl_easy_strerror(CURLE_SSL_CONNECT_ERROR));
  if (!wrong_name && !no_handshake) refusal.clear();
  // The library compares the names itself, after OpenSSL has accepted the certificate.
  if (wrong_name && refusal.empty()) refusal = "it is not for this host name";
  if (!refusal.empty()) {
    sentence += " (the server's certificate was refused: " + refusal + ")";
  } else if (failure.contains("alert") || failure.contains("SSL_read") ||
             failure.starts_with(curl_easy_strerror(CURLE_GOT_NOTHING))) {
    sentence += kClosedWithoutAnswer;
  }
  return {ErrorCode::kUnavailable, std::move(sentence)};
}

Result<std::unique_ptr<LibcurlTransport>> LibcurlTransport::Make(const Config& config) {
  StartLibraryOnce();
  return Over(std::make_shared<Connections>(config, /*to_many=*/false), config);
}

Result<std::unique_ptr<LibcurlTransport>> LibcurlTransport::Over(
    std::shared_ptr<Connections> connections, const Config& config) {
  if (config.server.starts_with("https://")) RETURN_IF_ERROR(connections->CheckTls());
  return std::unique_ptr<LibcurlTransport>(
      new LibcurlTransport(std::make_unique<Server>(config, std::move(connections))));
}

LibcurlTransport::LibcurlTransport(std::unique_ptr<Server> server) : server_(std::move(server)) {}
LibcurlTransport::~LibcurlTransport() = default;

Result<HttpResponse> LibcurlTransport::Send(const HttpRequest& request, std::stop_token stop) {
  return server_->Run(request, nullptr, Duration::zero(), stop);
}

Result<HttpResponse> LibcurlTransport::Stream(const HttpRequest& request, const LineSink& sink,
                                              Duration idle, std::stop_token stop) {
  return server_->Run(request, &sink, idle, stop);
}

LibcurlTransports::LibcurlTransports() = default;
LibcurlTransports::~LibcurlTransports() = default;

Result<std::unique_ptr<HttpTransport>> LibcurlTransports::Make(const Config& config) {
  StartLibraryOnce();
  Config common = config;
  common.server.clear();
  std::shared_ptr<LibcurlTransport::Connections> connections;
  {
    const std::lock_guard lock(mutex_);
    if (connections_ == nullptr || common_ != common) {
      connections_ = std::make_shared<LibcurlTransport::Connections>(config, /*to_many=*/true);
      common_ = std::move(common);
    }
    connections = connections_;
  }
  return LibcurlTransport::Over(std::move(connections), config);
}

}  // namespace pliant::kube
