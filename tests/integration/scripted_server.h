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
  std::string client_name;  // of its certificate; "" without one
};

// One TLS connection of the server, in the hands of the test's handler: it writes whatever bytes
// the case needs, whenever it wants.
class ServerConnection {
 public:
  ServerConnection(SSL* tls, int socket) : tls_(tls), socket_(socket) {}

  // False when the client has gone.
  bool Write(std::string_view bytes);
  // So many bytes, for whoever takes a whole connection; "" when the client has gone.
  std::string Read(std::size_t count);
  // A whole answer with a Content-Length.
  bool Answer(int status, std::string_view body, std::string_view headers = "");
  bool BeginChunked() { return Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }
  bool Chunk(std::string_view bytes);
  bool EndChunked() { return Write("0\r\n\r\n"); }

  void Reset();         // the client sees RST
  void CloseHalfWay();  // the client sees the end of the stream, as after a crash of the server
  void CloseInOrder();  // and is told that TLS ends here, as by a server that means it
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
    // That it takes by ALPN, the best first; none: it has never heard of ALPN.
    std::vector<std::string> protocols;
    // Takes each connection on which that is "h2", to its end.
    std::function<void(ServerConnection&)> http2;
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

  static int SelectProtocol(SSL* tls, const unsigned char** selected, unsigned char* size,
                            const unsigned char* offered, unsigned int offered_size, void* server);
  void Accept(const std::stop_token& stop);
  void Serve(int socket);
  void CloseEnded();

  const Handler handler_;
  const std::function<void(ServerConnection&)> http2_;
  std::string protocols_;  // as ALPN has them: each after its length
  SSL_CTX* tls_ = nullptr;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::list<Session> sessions_;  // guarded by mutex_
  int connections_ = 0;          // guarded by mutex_
  std::jthread acceptor_;
};

}  // namespace pliant::kube
