#include "trainer/runtime/signals.h"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <csignal>
#include <utility>

#include <sys/signalfd.h>

#include "base/check.h"
#include "base/real_event_loop.h"

namespace pliant {
namespace {

sigset_t StopSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

int OpenSignalFile() {
  const sigset_t set = StopSet();
  const int file = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  CHECK(file >= 0, "a process may have one more descriptor at its start");
  return file;
}

}  // namespace

void HoldStopSignals() {
  const sigset_t set = StopSet();
  CHECK(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "the set is valid");
}

class StopSignals::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(RealEventLoop& loop, std::function<void(int)> on_signal)
      : file_(loop.context(), OpenSignalFile()), on_signal_(std::move(on_signal)) {}

  void Read() {
    boost::asio::async_read(file_, boost::asio::buffer(&info_, sizeof info_),
                            [self = shared_from_this()](const auto& error, std::size_t) {
                              if (error || !self->on_signal_) return;
                              self->on_signal_(static_cast<int>(self->info_.ssi_signo));
                              if (self->on_signal_) self->Read();
                            });
  }

  void Stop() {
    on_signal_ = nullptr;
    boost::system::error_code ignored;
    file_.close(ignored);
  }

 private:
  boost::asio::posix::stream_descriptor file_;
  std::function<void(int)> on_signal_;
  signalfd_siginfo info_{};
};

StopSignals::StopSignals(RealEventLoop& loop, std::function<void(int)> on_signal)
    : impl_(std::make_shared<Impl>(loop, std::move(on_signal))) {
  HoldStopSignals();
  impl_->Read();
}

StopSignals::~StopSignals() { impl_->Stop(); }

}  // namespace pliant
