#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <openssl/ssl.h>

#include "operator/kube/http_transport.h"
#include "tests/integration/test_certificates.h"

namespace pliant::kube {

struct ReceivedRequest {
  std::string method;
  std::string target;
  HttpHeaders headers;
  std::string body;
  std::string client_name;  // name in its certificate; "" without one
};

// One TLS connection of the server, controlled by the test's handler: it writes any bytes at any
// time.
class ServerConnection {
 public:
  ServerConnection(SSL* tls, int socket) : tls_(tls), socket_(socket) {}

  // Returns false when the client has closed the connection.
  bool Write(std::string_view bytes);
  // Reads `count` bytes, for a handler that serves a whole connection; "" when the client has
  // closed it.
  std::string Read(std::size_t count);
  // Writes a whole answer with a Content-Length.
  bool Answer(int status, std::string_view body, std::string_view headers = "");
  bool BeginChunked() { return Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  bool Chunk(std::string_view bytes);
  bool EndChunked() { return Write("0\r\n\r\n"); }

  void Reset();         // the client sees RST
  void CloseHalfWay();  // the client sees the end of the stream, as after a crash of the server
  void CloseInOrder();  // and receives a TLS close_notify, as from an orderly server
  // Waits until the client closes the connection (or the server is destroyed).
  void WaitForClient();
  bool open() const { return open_; }

 private:
  SSL* const tls_;
  const int socket_;
  bool open_ = true;
};

// A TLS server on loopback. The test writes its answers, byte by byte if necessary.
class ScriptedServer {
 public:
  // Runs once per request, on the connection's own thread.
  using Handler = std::function<void(ServerConnection&, const ReceivedRequest&)>;

  struct Options {
    std::vector<std::string> names = {"127.0.0.1"};  // in its certificate
    bool ipv6 = false;                               // listens on ::1
    bool client_certificate_required = false;
    // Protocols that it accepts by ALPN, the best first; none: it does not support ALPN.
    std::vector<std::string> protocols;
    // Serves a whole connection on which "h2" was negotiated.
    std::function<void(ServerConnection&)> http2;
  };

  ScriptedServer(const TestAuthority& authority, Options options, Handler handler);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  int connections() const;       // so far
  int open_connections() const;  // connections whose socket the server still has open

 private:
  struct Session {
    int socket;
    std::atomic<bool> ended = false;
    std::jthread thread;
  };

  static int SelectProtocol(SSL* tls, const unsigned char** selected, unsigned char* size,
                            const unsigned char* offered, unsigned int offered_size, void* server);
  void Accept(const std::stop_token& stop);
  void Serve(int socket);
  void CloseEnded();

  const Handler handler_;
  const std::function<void(ServerConnection&)> http2_;
  std::string protocols_;  // in ALPN's form: each after its length
  SSL_CTX* tls_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::list<Session> sessions_;  // guarded by mutex_
  int connections_ = 0;          // guarded by mutex_
  std::jthread acceptor_;
};

}  // namespace pliant::kube
