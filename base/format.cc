#include "base/format.h"

namespace pliant {

std::string FormatArguments(std::string_view format, std::format_args arguments) {
  return std::vformat(format, arguments);
}

}  // namespace pliant
