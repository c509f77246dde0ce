#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "operator/kube/http_transport.h"

namespace pliant::kube {

// Cuts a stream of bytes into lines, wherever the pieces in which it arrives end.
class LineSplitter {
 public:
  enum class Outcome { kMore, kStopped, kLineTooLong };

  LineSplitter(const LineSink& sink, std::size_t line_bytes_max)
      : sink_(sink), line_bytes_max_(line_bytes_max) {}

  // kMore until the sink wants no more, or a line grows beyond the limit.
  Outcome Feed(std::string_view piece);
  // The stream has ended: hands over what came after the last line end, if anything.
  Outcome Finish();

 private:
  const LineSink& sink_;
  const std::size_t line_bytes_max_;
  std::string begun_;  // a line whose end has not come yet
};

}  // namespace pliant::kube
