#pragma once

#include <span>
#include <string_view>

namespace pliant::web {

// A file of the page, as it is in this folder.
struct PageFile {
  std::string_view path;  // of the URL
  std::string_view content_type;
  std::string_view text;
};

// The index is at "/".
std::span<const PageFile> PageFiles();

// All scripts of the page as one.
std::string_view PageBundle();

}  // namespace pliant::web
