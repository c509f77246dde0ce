#include "tests/integration/scripted_server.h"

#include <algorithm>
#include <csignal>
#include <optional>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/format.h"

namespace pliant::kube {
namespace {

void Identify(SSL_CTX* tls, const TestCertificate& identity) {
  BIO* certificate_bio = BIO_new_mem_buf(identity.certificate_pem.data(), -1);
  X509* certificate = PEM_read_bio_X509(certificate_bio, nullptr, nullptr, nullptr);
  BIO* key_bio = BIO_new_mem_buf(identity.key_pem.data(), -1);
  EVP_PKEY* key = PEM_read_bio_PrivateKey(key_bio, nullptr, nullptr, nullptr);
  CHECK(SSL_CTX_use_certificate(tls, certificate) == 1, "server certificate");
  CHECK(SSL_CTX_use_PrivateKey(tls, key) == 1, "server key");
  X509_free(certificate);
  EVP_PKEY_free(key);
  BIO_free(certificate_bio);
  BIO_free(key_bio);
}

void Trust(SSL_CTX* tls, const std::string& authority_pem) {
  BIO* bio = BIO_new_mem_buf(authority_pem.data(), static_cast<int>(authority_pem.size()));
  X509* authority = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(tls), authority);
  X509_free(authority);
  BIO_free(bio);
}

std::string ClientName(SSL* tls) {
  X509* certificate = SSL_get1_peer_certificate(tls);
  if (certificate == nullptr) return "";
  char name[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof(name));
  X509_free(certificate);
  return name;
}

int Listen(bool ipv6, int& port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  auto* address = ipv6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = ipv6 ? sizeof(v6) : sizeof(v4);
  const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(bind(listener, address, size) == 0, "bind");
  CHECK(listen(listener, 128) == 0, "listen");
  getsockname(listener, address, &size);
  port = ntohs(ipv6 ? v6.sin6_port : v4.sin_port);
  return listener;
}

// Reads one request; nullopt when the client closed the connection.
std::optional<ReceivedRequest> Receive(SSL* tls) {
  std::string text;
  std::size_t head_end = std::string::npos;
  std::size_t missing = 0;
  ReceivedRequest request;
  while (head_end == std::string::npos || text.size() < head_end + missing) {
    char bytes[16384];
    const int got = SSL_read(tls, bytes, sizeof(bytes));
    if (got <= 0) return std::nullopt;
    text.append(bytes, static_cast<std::size_t>(got));
    if (head_end != std::string::npos) continue;
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    head_end = end + 4;
    std::size_t at = text.find("\r\n");
    const std::string line = text.substr(0, at);
    request.method = line.substr(0, line.find(' '));
    request.target =
        line.substr(request.method.size() + 1, line.rfind(' ') - request.method.size() - 1);
    while (at < end) {
      const std::size_t begin = at + 2;
      at = text.find("\r\n", begin);
      const std::size_t colon = text.find(':', begin);
      const std::size_t value = text.find_first_not_of(' ', colon + 1);
      request.headers.emplace(text.substr(begin, colon - begin), text.substr(value, at - value));
    }
    if (const auto length = request.headers.find("Content-Length");
        length != request.headers.end()) {
      missing = std::stoul(length->second);
    }
  }
  request.body = text.substr(head_end);
  request.client_name = ClientName(tls);
  return request;
}

}  // namespace

bool ServerConnection::Write(std::string_view bytes) {
  while (open_ && !bytes.empty()) {
    const int written =
        SSL_write(tls_, bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), 65536)));
    if (written <= 0) open_ = false;
    if (open_) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return open_;
}

std::string ServerConnection::Read(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t got = 0; open_ && got < count;) {
    const int more = SSL_read(tls_, bytes.data() + got, static_cast<int>(count - got));
    if (more <= 0) open_ = false;
    if (open_) got += static_cast<std::size_t>(more);
  }
  return open_ ? bytes : "";
}

bool ServerConnection::Answer(int status, std::string_view body, std::string_view headers) {
  return Write(Format("HTTP/1.1 {} x\r\n{}Content-Length: {}\r\n\r\n{}", status, headers,
                      body.size(), body));
}

bool ServerConnection::Chunk(std::string_view bytes) {
  return Write(Format("{:x}\r\n{}\r\n", bytes.size(), bytes));
}

void ServerConnection::Reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  open_ = false;
}

void ServerConnection::CloseHalfWay() {
  shutdown(socket_, SHUT_WR);
  open_ = false;
}

void ServerConnection::CloseInOrder() {
  SSL_shutdown(tls_);
  CloseHalfWay();
}

void ServerConnection::WaitForClient() {
  char byte = 0;
  while (open_ && SSL_read(tls_, &byte, 1) > 0) continue;
  open_ = false;
}

ScriptedServer::ScriptedServer(const TestAuthority& authority, Options options, Handler handler)
    : handler_(std::move(handler)), http2_(std::move(options.http2)) {
  std::signal(SIGPIPE, SIG_IGN);  // clients that close early are part of the tests
  tls_ = SSL_CTX_new(TLS_server_method());
  Identify(tls_, authority.Issue("server", options.names));
  if (options.client_certificate_required) {
    Trust(tls_, authority.pem());
    SSL_CTX_set_verify(tls_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  for (const std::string& protocol : options.protocols) {
    protocols_ += static_cast<char>(protocol.size());
    protocols_ += protocol;
  }
  if (!protocols_.empty()) SSL_CTX_set_alpn_select_cb(tls_, &SelectProtocol, this);
  listener_ = Listen(options.ipv6, port_);
  acceptor_ = std::jthread([this](const std::stop_token& stop) { Accept(stop); });
}

ScriptedServer::~ScriptedServer() {
  acceptor_.request_stop();
  acceptor_.join();
  close(listener_);
  for (const Session& session : sessions_) shutdown(session.socket, SHUT_RDWR);
  for (Session& session : sessions_) {
    session.thread.join();
    close(session.socket);
  }
  SSL_CTX_free(tls_);
}

int ScriptedServer::SelectProtocol(SSL*, const unsigned char** selected, unsigned char* size,
                                   const unsigned char* offered, unsigned int offered_size,
                                   void* server) {
  const std::string& ours = static_cast<ScriptedServer*>(server)->protocols_;
  unsigned char* common = nullptr;
  const int found =
      SSL_select_next_proto(&common, size, reinterpret_cast<const unsigned char*>(ours.data()),
                            static_cast<unsigned int>(ours.size()), offered, offered_size);
  *selected = common;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

int ScriptedServer::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

int ScriptedServer::open_connections() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(sessions_.size());
}

void ScriptedServer::Accept(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    pollfd ready{.fd = listener_, .events = POLLIN, .revents = 0};
    const int any = poll(&ready, 1, /*milliseconds=*/20);
    CloseEnded();
    if (any <= 0) continue;
    const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (accepted < 0) continue;
    const int at_once = 1;  // sends each write at once, as a real server does
    setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
    const std::lock_guard lock(mutex_);
    ++connections_;
    Session& session = sessions_.emplace_back(accepted);
    session.thread = std::jthread([this, accepted, &session] {
      Serve(accepted);
      session.ended = true;
    });
  }
}

void ScriptedServer::CloseEnded() {
  const std::lock_guard lock(mutex_);
  for (auto session = sessions_.begin(); session != sessions_.end();) {
    if (!session->ended) {
      ++session;
      continue;
    }
    session->thread.join();
    close(session->socket);
    session = sessions_.erase(session);
  }
}

void ScriptedServer::Serve(int socket) {
  SSL* tls = SSL_new(tls_);
  SSL_set_fd(tls, socket);
  bool orderly = true;
  if (SSL_accept(tls) == 1) {
    ServerConnection connection(tls, socket);
    const unsigned char* protocol = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(tls, &protocol, &size);
    const std::string_view spoken(reinterpret_cast<const char*>(protocol), size);
    if (spoken == "h2") http2_(connection);
    while (connection.open() && spoken != "h2") {
      const std::optional<ReceivedRequest> request = Receive(tls);
      if (!request) break;
      handler_(connection, *request);
    }
    orderly = connection.open();
  }
  SSL_free(tls);
  // Replaces the last reference to the connection, which closes it (with RST if that was
  // requested). The descriptor number stays in use by an unconnected socket, so that the destructor
  // may shut it down.
  if (!orderly) {
    const int unconnected = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    dup2(unconnected, socket);
    close(unconnected);
  } else {
    shutdown(socket, SHUT_RDWR);
  }
}

}  // namespace pliant::kube
