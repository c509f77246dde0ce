#pragma once

#include <span>

namespace pliant {

// How gradients are added up where they are: in the host's memory, or in a device's, whose
// addresses the spans then hold.
class GradientArithmetic {
 public:
  virtual ~GradientArithmetic() = default;

  virtual void Zero(std::span<float> out) = 0;
  // out = addends[0] + (addends[1] + (… + addends.back())), elementwise in fp32. All have the size
  // of `out`, which may be one of them.
  virtual void AddUp(std::span<const std::span<const float>> addends, std::span<float> out) = 0;
};

// That of the host.
GradientArithmetic& HostArithmetic();

}  // namespace pliant
