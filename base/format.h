#pragma once

#include <cstdint>
#include <format>
#include <string>
#include <string_view>

namespace pliant {

std::string FormatArguments(std::string_view format, std::format_args arguments);

// Like std::format. Its code, thousands of instructions, is compiled once instead of in every file.
template <typename... Arguments>
std::string Format(std::format_string<Arguments...> format, Arguments&&... arguments) {
  return FormatArguments(format.get(), std::make_format_args(arguments...));
}

// "1 GPU", "2 GPUs"
std::string Counted(std::int64_t count, std::string_view one);

}  // namespace pliant
