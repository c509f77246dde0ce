#include "operator/controller/workers.h"

#include <stop_token>

namespace pliant::controller {

Workers::Workers(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) {
      while (auto task = tasks_.Take(stop)) (*task)();
    });
  }
}

Workers::~Workers() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

}  // namespace pliant::controller
