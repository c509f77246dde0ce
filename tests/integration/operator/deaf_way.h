#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <thread>

namespace pliant {

// A TCP forwarder on loopback to a server there. While it is deaf, the server's data reach the
// client, but the client's data wait. They arrive when it is no longer deaf, even if the client
// ended long before.
class DeafWay {
 public:
  explicit DeafWay(int server_port);
  ~DeafWay();
  DeafWay(const DeafWay&) = delete;
  DeafWay& operator=(const DeafWay&) = delete;

  int port() const { return port_; }  // clients connect to this port
  void set_deaf(bool deaf) { deaf_ = deaf; }
  std::size_t bytes_held() const { return bytes_held_; }

 private:
  void Accept(const std::stop_token& stop);
  void Carry(int client, const std::stop_token& stop);

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> deaf_ = false;
  std::atomic<std::size_t> bytes_held_ = 0;
  std::jthread acceptor_;
};

}  // namespace pliant
