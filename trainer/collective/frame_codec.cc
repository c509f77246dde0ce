#include "trainer/collective/frame_codec.h"

#include "base/check.h"

namespace pliant {

CodecPause CodecPause::Of(IoResult result) {
  switch (result.state) {
    case IoState::kWantRead:
      return {.until = Until::kReadable, .reason = {}};
    case IoState::kWantWrite:
      return {.until = Until::kWritable, .reason = {}};
    case IoState::kClosed:
      return Failed(std::move(result.reason));
    case IoState::kReady:
      break;
  }
  CHECK(false, "a codec that can continue does not pause");
  return {};
}

}  // namespace pliant
