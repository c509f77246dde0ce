#include "operator/kube/line_splitter.h"

namespace pliant::kube {

LineSplitter::Outcome LineSplitter::Feed(std::string_view piece) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    if (begun_.size() + part.size() > max_line_bytes_) return Outcome::kLineTooLong;
    if (end == std::string_view::npos) {
      begun_ += part;
      break;
    }
    bool more = true;
    if (begun_.empty()) {
      more = sink_(part);  // the common case, without a copy
    } else {
      begun_ += part;
      more = sink_(begun_);
      begun_.clear();
    }
    if (!more) return Outcome::kStopped;
    piece.remove_prefix(end + 1);
  }
  return Outcome::kMore;
}

LineSplitter::Outcome LineSplitter::Finish() {
  if (begun_.empty()) return Outcome::kMore;
  const bool more = sink_(begun_);
  begun_.clear();
  return more ? Outcome::kMore : Outcome::kStopped;
}

}  // namespace pliant::kube
