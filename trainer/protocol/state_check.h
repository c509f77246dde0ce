#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/data/batch_segments.h"
#include "trainer/data/noise_window.h"

namespace pliant {

// The suffix of a tensor that holds JSON: eight bytes of its length, little-endian, then the text.
// In a difference the value in the text is named, not the tensor.
inline constexpr std::string_view kJsonSuffix = ".json";

// The prefix of tensors that may differ between learners.
inline constexpr std::string_view kLocalPrefix = "local.";

// A learner's state, for comparison with that of others. Learners with equal digests hold the same
// bits, with a probability of error of 2^-64.
struct StateDigest {
  static constexpr std::size_t kMaxText = std::size_t{1} << 16;

  std::uint64_t runtime = 0;           // checksum of what the runtime keeps besides the program
  std::vector<std::uint64_t> tensors;  // checksums, in StateDict order; 0: kLocalPrefix
  std::string text;                    // of the first JSON tensor, "" if it is longer than kMaxText
  bool operator==(const StateDigest&) const = default;
};

// `runtime` stays 0.
Result<StateDigest> DigestOf(const StateDict& state);
// The checksum of what the runtime keeps of the training besides the program's state.
std::uint64_t RuntimeChecksum(const NoiseWindow& noise, const BatchSegments& batches);

// The ranks whose state differs from the most common one; of two equally common states, the one of
// the lowest rank counts. Ranks without a digest are not judged.
std::vector<int> DifferingRanks(std::span<const std::optional<StateDigest>> digest_of_rank);

// One thing in which the states of two learners differ.
struct StateMismatch {
  std::string name;   // "model.fc.weight", "optimizer.param_groups[0].lr"
  std::string own;    // its value, "" if that is not known
  std::string other;  // likewise
  // The program computes it for itself: no reduced value becomes part of it, so that an error of
  // the machine is unlikely.
  bool of_program = false;
  bool operator==(const StateMismatch&) const = default;
};

// `shape` is the state of both. The digests differ, and may come from a peer.
StateMismatch MismatchOf(const StateDict& shape, const StateDigest& own, const StateDigest& other);

}  // namespace pliant
