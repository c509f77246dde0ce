#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace pliant {

// Reads the whole file; for small ones (tokens, certificates, counters).
Result<std::string> ReadFile(const std::filesystem::path& path);

// After a crash at any moment the file holds either its old content or the new one: a temporary
// file next to it is written, synced and renamed over it, then the directory is synced.
Status WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

}  // namespace pliant
