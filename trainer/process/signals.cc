#include "trainer/process/signals.h"

#include <array>
#include <atomic>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"
#include "base/real_event_loop.h"

namespace pliant {
namespace {

constexpr std::array<int, 2> kStopSignals = {SIGTERM, SIGINT};

// The handler's data are set before it is installed, and stay for the process's life.
std::atomic<pid_t> g_owner = 0;
std::atomic<int> g_read_end = -1;
std::atomic<int> g_write_end = -1;

std::mutex g_mutex;  // guards what follows
bool g_held = false;
std::array<struct sigaction, kStopSignals.size()> g_before{};

void OnSignal(int signal) {
  const int error = errno;
  if (::getpid() == g_owner) {
    const auto number = static_cast<unsigned char>(signal);
    // A full pipe holds enough signals already.
    [[maybe_unused]] const ssize_t written = ::write(g_write_end, &number, 1);
  } else {
    // A forked child: the signal acts on it as usual.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = error;
}

}  // namespace

void HoldStopSignals() {
  const std::lock_guard lock(g_mutex);
  if (g_held) return;
  g_held = true;
  if (g_owner != ::getpid()) {  // the first time, or in a child that trains on its own
    std::array<int, 2> ends{};
    CHECK(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0,
          "a process may have two more descriptors at its start");
    g_read_end = ends[0];
    g_write_end = ends[1];
    g_owner = ::getpid();
  }
  struct sigaction action{};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    CHECK(::sigaction(kStopSignals[i], &action, &g_before[i]) == 0, "the signals exist");
  }
}

void ReleaseStopSignals() {
  const std::lock_guard lock(g_mutex);
  if (!g_held) return;
  g_held = false;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    CHECK(::sigaction(kStopSignals[i], &g_before[i], nullptr) == 0, "the signals exist");
  }
}

class StopSignals::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(RealEventLoop& loop, std::function<void(int)> on_signal)
      : file_(loop.context(), g_read_end), on_signal_(std::move(on_signal)) {}

  void Read() {
    boost::asio::async_read(file_, boost::asio::buffer(&number_, sizeof number_),
                            [self = shared_from_this()](const auto& error, std::size_t) {
                              if (error || !self->on_signal_) return;
                              self->on_signal_(self->number_);
                              if (self->on_signal_) self->Read();
                            });
  }

  void Stop() {
    on_signal_ = nullptr;
    boost::system::error_code ignored;
    file_.cancel(ignored);
    file_.release();  // the pipe stays open for later signals
  }

 private:
  boost::asio::posix::stream_descriptor file_;
  std::function<void(int)> on_signal_;
  unsigned char number_ = 0;
};

StopSignals::StopSignals(RealEventLoop& loop, std::function<void(int)> on_signal) {
  HoldStopSignals();
  impl_ = std::make_shared<Impl>(loop, std::move(on_signal));
  impl_->Read();
}

StopSignals::~StopSignals() { impl_->Stop(); }

}  // namespace pliant
