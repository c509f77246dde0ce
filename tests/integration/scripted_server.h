#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <openssl/ssl.h>

#include "operator/kube/http_transport.h"
#include "tests/integration/test_certificates.h"

namespace pliant::kube {

struct ReceivedRequest {
  std::string method;
  std::string target;
  HttpHeaders headers;
  std::string body;
  std::string client_name;  // of its certificate; "" without one
};

// One TLS connection of the server, in the hands of the test's handler: it writes whatever bytes
// the case needs, whenever it wants.
class ServerConnection {
 public:
  ServerConnection(SSL* tls, int socket) : tls_(tls), socket_(socket) {}

  // False when the client has gone.
  bool Write(std::string_view bytes);
  // A whole answer with a Content-Length.
  bool Answer(int status, std::string_view body, std::string_view headers = "");
  bool BeginChunked() { return Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  bool Chunk(std::string_view bytes);
  bool EndChunked() { return Write("0\r\n\r\n"); }

  void Reset();         // the client sees RST
  void CloseHalfWay();  // the client sees the end of the stream, as after a crash of the server
  // Waits until the client closes the connection (or the server is destroyed).
  void WaitForClient();
  bool open() const { return open_; }

 private:
  SSL* const tls_;
  const int socket_;
  bool open_ = true;
};

// A TLS server on loopback whose answers are written by the test, byte by byte if need be.
class ScriptedServer {
 public:
  // Runs once a request, on a thread of the connection's own.
  using Handler = std::function<void(ServerConnection&, const ReceivedRequest&)>;

  struct Options {
    std::vector<std::string> names = {"127.0.0.1"};  // in its certificate
    bool ipv6 = false;                               // listens on ::1
    bool client_certificate_required = false;
  };

  ScriptedServer(const TestAuthority& authority, Options options, Handler handler);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  int connections() const;       // so far
  int open_connections() const;  // those of which this server still has the socket

 private:
  struct Session {
    int socket;
    std::atomic<bool> ended = false;
    std::jthread thread;
  };

  void Accept(const std::stop_token& stop);
  void Serve(int socket);
  void CloseEnded();

  const Handler handler_;
  SSL_CTX* tls_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::list<Session> sessions_;  // guarded by mutex_
  int connections_ = 0;          // guarded by mutex_
  std::jthread acceptor_;
};

}  // namespace pliant::kube
