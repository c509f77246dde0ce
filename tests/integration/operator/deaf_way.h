#pragma once

#include <atomic>
#include <cstddef>
#include <stop_token>
#include <thread>

namespace pliant {

// A TCP way on loopback to a server there. While it is deaf the client hears the server, which does
// not hear it: what it sends, and goes on sending, arrives when that is over, even if the client
// has long gone.
class DeafWay {
 public:
  explicit DeafWay(int server_port);
  ~DeafWay();
  DeafWay(const DeafWay&) = delete;
  DeafWay& operator=(const DeafWay&) = delete;

  int port() const { return port_; }  // for the client
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
