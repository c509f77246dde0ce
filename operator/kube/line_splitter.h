#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "operator/kube/http_transport.h"

namespace pliant::kube {

// Splits a stream of bytes into lines, independently of the pieces in which it arrives.
class LineSplitter {
 public:
  enum class Outcome { kMore, kStopped, kLineTooLong };

  LineSplitter(const LineSink& sink, std::size_t max_line_bytes)
      : sink_(sink), max_line_bytes_(max_line_bytes) {}

  // kMore until the sink returns false or a line exceeds the limit.
  Outcome Feed(std::string_view piece);
  // The stream has ended: passes on the text after the last line end, if there is any.
  Outcome Finish();

 private:
  const LineSink& sink_;
  const std::size_t max_line_bytes_;
  std::string begun_;  // a line whose end has not arrived yet
};

}  // namespace pliant::kube
