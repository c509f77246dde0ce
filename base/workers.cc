#include "base/workers.h"

#include <stop_token>

#include "base/exceptions.h"

namespace pliant {

Workers::Workers(std::string what, int threads, AtEnd at_end) : at_end_(at_end) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this, what](const std::stop_token& stop) {
      EndOnException(what.c_str(), [&] {
        while (const auto task = tasks_.Take(stop)) (*task)();
      });
    });
  }
}

Workers::~Workers() {
  if (at_end_ == AtEnd::kDrop) Stop();
  tasks_.Close();
  // Without this, the threads' destructors would request a stop and drop the remaining tasks.
  for (std::jthread& thread : threads_) thread.join();
}

void Workers::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

}  // namespace pliant
