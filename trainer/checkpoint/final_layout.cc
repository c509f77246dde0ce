#include "trainer/checkpoint/final_layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/format.h"
#include "trainer/checkpoint/stored_checkpoint.h"

namespace pliant {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxTexts = 64;
constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20;  // of one; what a reader accepts
constexpr std::size_t kMaxFileName = 200;
constexpr std::string_view kExtension = ".safetensors";

// Letters, digits and "_-.", so that it is a file in the model's directory.
bool IsFileName(std::string_view name) {
  constexpr std::string_view kSigns = "_-.";
  return !name.empty() && name.size() <= kMaxFileName && name.front() != '.' &&
         std::ranges::all_of(name, [&](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  kSigns.contains(c);
         });
}

Status CheckText(const FinalLayout::Text& text) {
  if (!IsFileName(text.name) || text.name == kManifestName || text.name.contains(kExtension)) {
    return Invalid(
        Format("\"{}\" cannot be a file of the final model: give a name of letters, digits and "
               "\"_-.\", other than {} and *{}",
               text.name, kManifestName, kExtension));
  }
  if (text.text.size() > kMaxTextBytes) {
    return Invalid(Format("the file {} of the final model has {} bytes: at most {} are possible",
                          text.name, text.text.size(), kMaxTextBytes));
  }
  return {};
}

// Cuts the model into parts of at most so many bytes.
std::vector<StateDict> Cut(const StateDict& model, std::uint64_t file_bytes) {
  std::vector<StateDict> parts(1);
  std::uint64_t bytes = 0;
  for (const TensorView& tensor : model) {
    if (!parts.back().empty() && bytes + tensor.bytes.size() > file_bytes) {
      parts.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes.size();
    parts.back().push_back(tensor);
  }
  return parts;
}

std::string IndexOf(const std::vector<TensorFile>& files) {
  Json map = Json::object();
  std::uint64_t bytes = 0;
  for (const TensorFile& file : files) {
    for (const TensorView& tensor : file.tensors) {
      map[tensor.name] = file.name;
      bytes += tensor.bytes.size();
    }
  }
  const Json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", std::move(map)}};
  return index.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Status CheckFinalLayout(const FinalLayout& layout) {
  if (!IsFileName(layout.stem)) {
    return Invalid(Format("\"{}\" cannot name the files of the final model", layout.stem));
  }
  if (layout.file_bytes == 0) return Invalid("a file of the final model has no room");
  if (layout.texts.size() > kMaxTexts) {
    return Invalid(Format("{} text files of the final model: at most {} are possible",
                          layout.texts.size(), kMaxTexts));
  }
  std::set<std::string_view> files;
  for (const FinalLayout::Text& text : layout.texts) {
    RETURN_IF_ERROR(CheckText(text));
    if (!files.insert(text.name).second) {
      return Invalid(Format("two files of the final model are named {}", text.name));
    }
  }
  std::set<std::string_view> exported;
  for (const auto& [tensor, name] : layout.names.value_or(std::map<std::string, std::string>())) {
    if (name.empty()) return Invalid(Format("{} has an empty name in the final model", tensor));
  }
  if (!layout.names) return {};
  for (const auto& [tensor, name] : *layout.names) {
    if (!exported.insert(name).second) {
      return Invalid(Format("two tensors of the final model are named {}", name));
    }
  }
  return {};
}

StateDict FinalModelOf(const StateDict& state, const FinalLayout& layout, const StateDict& home) {
  StateDict model;
  for (const StateDict* const from : {&state, &home}) {
    for (const TensorView& tensor : *from) {
      if (!tensor.name.starts_with(kModelPrefix)) continue;
      if (!layout.names) {
        model.push_back(tensor);
      } else if (const auto found = layout.names->find(tensor.name); found != layout.names->end()) {
        model.push_back(tensor);
        model.back().name = std::string(kModelPrefix) + found->second;
      } else if (from == &state) {
        model.push_back(tensor);
      }
    }
  }
  std::ranges::sort(model, {}, &TensorView::name);
  return model;
}

std::vector<TensorFile> FinalFiles(const StateDict& model, const FinalLayout& layout) {
  std::set<std::string_view> exported;
  if (layout.names) {
    for (const auto& [tensor, name] : *layout.names) exported.insert(name);
  }
  StateDict named;
  StateDict further;
  for (TensorView tensor : model) {
    tensor.name.erase(0, kModelPrefix.size());
    (!layout.names || exported.contains(tensor.name) ? named : further).push_back(tensor);
  }
  const std::vector<StateDict> parts = Cut(named, layout.file_bytes);
  std::vector<TensorFile> files;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string of = parts.size() == 1 ? "" : Format("-{:05}-of-{:05}", i + 1, parts.size());
    files.push_back(MakeTensorFile(Format("{}{}{}", layout.stem, of, kExtension), parts[i]));
  }
  if (files.size() > 1) {
    std::string index = IndexOf(files);
    files.push_back({.name = Format("{}{}.index.json", layout.stem, kExtension),
                     .tensors = {},
                     .header = std::move(index)});
  }
  if (!further.empty()) files.push_back(MakeTensorFile("further.safetensors", further));
  for (const FinalLayout::Text& text : layout.texts) {
    files.push_back({.name = text.name, .tensors = {}, .header = text.text});
  }
  return files;
}

}  // namespace pliant
