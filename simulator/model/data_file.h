#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant::simulator {

// Reads a regular file of at most `max_bytes`. An error names the file and the remedy; `kind` is
// what it should be: "CSV". kNotFound if there is no file.
Result<std::string> ReadDataFile(const std::filesystem::path& path, std::size_t max_bytes,
                                 std::string_view kind);

}  // namespace pliant::simulator
