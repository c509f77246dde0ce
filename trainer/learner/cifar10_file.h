#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "trainer/learner/samples.h"

namespace pliant::learner {

inline constexpr int kCifar10Classes = 10;
inline constexpr int kCifar10Side = 32;
inline constexpr int kCifar10Channels = 3;

// Adds the images of one file of CIFAR-10's binary version to `samples`. A record is a label byte
// and 3072 bytes: red, green and blue, each row by row.
Status ParseCifar10(std::span<const std::uint8_t> bytes, const std::string& origin,
                    Samples& samples);

}  // namespace pliant::learner
