#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <ostream>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

namespace pliant {

// A TLS server on loopback that records what each client sends, and answers nothing.
class TlsListener {
 public:
  struct Heard {
    bool handshake = false;  // the client accepted the certificate and the protocol version
    std::string text;        // what it sent then, to the end of the request's header
    bool operator==(const Heard&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const Heard& heard) {
      return out << (heard.handshake ? "a handshake, then \"" : "no handshake, \"") << heard.text
                 << '"';
    }
  };

  // `certificate` and `key` are PEM texts, `newest` is the newest protocol version of the server.
  TlsListener(const std::string& certificate, const std::string& key, int newest = TLS1_3_VERSION)
      : tls_(boost::asio::ssl::context::tls_server),
        acceptor_(context_, {boost::asio::ip::address_v4::loopback(), 0}) {
    tls_.use_certificate_chain(boost::asio::buffer(certificate));
    tls_.use_private_key(boost::asio::buffer(key), boost::asio::ssl::context::pem);
    SSL_CTX_set_max_proto_version(tls_.native_handle(), newest);
    thread_ = std::jthread([this] { Accept(); });
  }
  ~TlsListener() { ::shutdown(acceptor_.native_handle(), SHUT_RDWR); }
  TlsListener(const TlsListener&) = delete;
  TlsListener& operator=(const TlsListener&) = delete;

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  // The next client, in the order of connection. Waits for it.
  Heard Next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !heard_.empty(); })) {
      ADD_FAILURE() << "no client came";
      return {};
    }
    Heard next = heard_.front();
    heard_.pop_front();
    return next;
  }

 private:
  void Accept() {
    while (true) {
      boost::system::error_code error;
      boost::asio::ip::tcp::socket socket = acceptor_.accept(error);
      if (error) return;
      boost::asio::ssl::stream<boost::asio::ip::tcp::socket> stream(std::move(socket), tls_);
      Heard heard;
      stream.handshake(boost::asio::ssl::stream_base::server, error);
      if (!error) {
        heard.handshake = true;
        std::array<char, 4096> bytes;
        while (!error && !heard.text.contains("\r\n\r\n")) {
          heard.text.append(bytes.data(), stream.read_some(boost::asio::buffer(bytes), error));
        }
      }
      const std::lock_guard lock(mutex_);
      heard_.push_back(std::move(heard));
      changed_.notify_all();
    }
  }

  boost::asio::io_context context_;
  boost::asio::ssl::context tls_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Heard> heard_;  // guarded by mutex_
  std::jthread thread_;      // last: it uses the other members
};

}  // namespace pliant
