#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace pliant::simulator {

// A temporary folder with a small data set of the application "toy", which tests spoil.
class DataFolder {
 public:
  DataFolder();
  DataFolder(const DataFolder&) = delete;
  DataFolder& operator=(const DataFolder&) = delete;
  ~DataFolder();

  const std::filesystem::path& path() const { return path_; }
  // Writes a file; its folder exists.
  void Write(std::string_view file, std::string_view content) const;
  void Remove(std::string_view file) const;
  // An error's message, in which the folder is not named: "toy/placements.csv:2: ...".
  std::string WithoutFolder(std::string message) const;

 private:
  std::filesystem::path path_;
};

}  // namespace pliant::simulator
