#pragma once

#include <chrono>

#include <sys/prctl.h>

namespace pliant {

// How often a thread looks whether work of a device is over. A peer waits for what comes next, so
// this is short compared with a step, and long compared with the driver's answer, which takes one
// or two microseconds.
inline constexpr std::chrono::microseconds kDevicePoll(20);

// Makes short sleeps of the calling thread exact to a microsecond instead of 50 µs.
inline void SleepPrecisely() { ::prctl(PR_SET_TIMERSLACK, 1000UL); }

}  // namespace pliant
