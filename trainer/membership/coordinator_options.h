#pragma once

#include <chrono>
#include <cstdint>

#include "base/event_loop.h"

namespace pliant {

struct CoordinatorOptions {
  std::uint64_t term = 1;
  // The last counter that an earlier process of this term persisted; 0: none.
  std::uint64_t counter = 0;
  int max_learners = 0;  // learners at once; 0: no limit
  // Unix time minus the event loop's time; progress is reported in Unix time.
  double unix_offset_seconds = 0;

  Duration heartbeat = std::chrono::seconds(1);     // required of learners
  Duration max_silence = std::chrono::seconds(10);  // then a connection without a message is closed
  // How long a learner may be without a connection while its membership is broken: if its peers
  // lost it too, and if they did not.
  Duration accused_grace = std::chrono::milliseconds(500);
  Duration reconnect_grace = std::chrono::seconds(3);
  Duration accusations_settle = std::chrono::milliseconds(200);  // more members may report
  // After a restart, the wait for hellos.
  Duration rebuild_wait = std::chrono::seconds(30);
  Duration join_settle = std::chrono::milliseconds(500);  // more joiners may become ready
  Duration prepare_timeout = std::chrono::seconds(10);
  Duration prepare_timeout_leave = std::chrono::seconds(3);  // when a learner waits to leave
};

}  // namespace pliant
