#include "trainer/protocol/state_check.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "trainer/checkpoint/checksum.h"
#include "trainer/checkpoint/device_memory.h"
#include "trainer/data/permutation.h"

namespace pliant {

Result<std::uint64_t> StateChecksum(const StateDict& state) {
  std::uint64_t checksum = 0;
  std::vector<std::byte> copy;  // of a tensor on a device
  for (const TensorView& tensor : state) {
    if (!tensor.name.starts_with(kModelPrefix) && !tensor.name.starts_with("optimizer.")) continue;
    std::span<const std::byte> bytes = tensor.bytes;
    if (tensor.device != nullptr) {
      copy.resize(tensor.bytes.size());
      const DeviceMemory::ToHost read{.device = tensor.bytes.data(), .host = copy};
      RETURN_IF_ERROR(tensor.device->Read({&read, 1}));
      bytes = copy;
    }
    checksum = HashWords({checksum, ChecksumOf(bytes)});
  }
  return checksum;
}

std::uint64_t ChecksumWith(std::uint64_t program_state, const NoiseWindow& noise,
                           const BatchSegments& batches) {
  std::uint64_t checksum = HashWords({program_state, std::bit_cast<std::uint64_t>(noise.trace),
                                      std::bit_cast<std::uint64_t>(noise.square),
                                      std::bit_cast<std::uint64_t>(noise.steps)});
  for (const BatchSegment& segment : batches) {
    checksum = HashWords({checksum, segment.epoch, static_cast<std::uint64_t>(segment.doublings)});
  }
  return checksum;
}

std::vector<int> DifferingRanks(std::span<const std::optional<std::uint64_t>> checksum_of_rank) {
  std::optional<std::uint64_t> majority_checksum;
  std::ptrdiff_t most = 0;
  for (const std::optional<std::uint64_t>& checksum : checksum_of_rank) {
    if (!checksum) continue;
    const auto holders = std::ranges::count(checksum_of_rank, checksum);
    if (holders <= most) continue;
    most = holders;
    majority_checksum = checksum;
  }
  std::vector<int> differing;
  for (std::size_t rank = 0; rank < checksum_of_rank.size(); ++rank) {
    const std::optional<std::uint64_t>& checksum = checksum_of_rank[rank];
    if (checksum && checksum != majority_checksum) differing.push_back(static_cast<int>(rank));
  }
  return differing;
}

}  // namespace pliant
