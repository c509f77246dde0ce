#include "base/format.h"

namespace pliant {

std::string FormatArguments(std::string_view format, std::format_args arguments) {
  return std::vformat(format, arguments);
}

std::string Counted(std::int64_t count, std::string_view one) {
  std::string text = std::to_string(count);
  text += ' ';
  text += one;
  if (count != 1) text += 's';
  return text;
}

}  // namespace pliant
