#include "trainer/checkpoint/memory_store.h"

#include <algorithm>
#include <cerrno>

#include "base/format.h"
#include "trainer/checkpoint/volume_error.h"

namespace pliant {
namespace {

std::unexpected<Error> Injected(std::string_view name) {
  return Fail(ErrorCode::kUnavailable, Format("{}: injected fault", name));
}

}  // namespace

Status MemoryStore::Put(std::string_view name, std::span<const std::span<const std::byte>> parts) {
  const Fault what = fault ? fault(operations_, name) : Fault::kNone;
  ++operations_;
  if (what == Fault::kFail) return Injected(name);
  std::vector<std::byte> content;
  for (const auto& part : parts) content.insert(content.end(), part.begin(), part.end());
  if (capacity && BytesBeside(name) + content.size() > *capacity) {
    return std::unexpected(VolumeError(Format("write {}", name), ENOSPC));
  }
  if (what == Fault::kFailTorn) content.resize(content.size() / 2);
  objects_[std::string(name)] = std::move(content);
  return what == Fault::kNone ? Status() : Injected(name);
}

std::uint64_t MemoryStore::BytesBeside(std::string_view name) const {
  std::uint64_t bytes = 0;
  for (const auto& [other, content] : objects_) {
    if (other != name) bytes += content.size();
  }
  return bytes;
}

Status MemoryStore::Read(std::string_view name, std::uint64_t offset, std::span<std::byte> out) {
  const auto found = objects_.find(std::string(name));
  if (found == objects_.end())
    return Fail(ErrorCode::kNotFound, Format("{}: no such object", name));
  const std::vector<std::byte>& content = found->second;
  if (offset > content.size() || out.size() > content.size() - offset)
    return Fail(ErrorCode::kCorrupt, Format("{}: {} bytes are too few", name, content.size()));
  std::ranges::copy(std::span(content).subspan(offset, out.size()), out.begin());
  return {};
}

Result<std::vector<StoredObject>> MemoryStore::List(std::string_view prefix) {
  std::vector<StoredObject> found;
  for (const auto& [name, content] : objects_)
    if (name.starts_with(prefix)) found.push_back({.name = name, .bytes = content.size()});
  return found;
}

Status MemoryStore::Replace(std::string_view from, std::string_view to) {
  const Fault what = fault ? fault(operations_, to) : Fault::kNone;
  ++operations_;
  if (what == Fault::kFail) return Injected(to);
  const std::string source = Format("{}/", from);
  const std::string target = Format("{}/", to);
  if (objects_.lower_bound(source) == objects_.end() ||
      !objects_.lower_bound(source)->first.starts_with(source))
    return Fail(ErrorCode::kNotFound, Format("{}: no such directory", from));
  std::erase_if(objects_, [&](const auto& object) { return object.first.starts_with(target); });
  for (auto it = objects_.lower_bound(source);
       it != objects_.end() && it->first.starts_with(source);) {
    objects_[target + it->first.substr(source.size())] = std::move(it->second);
    it = objects_.erase(it);
  }
  return what == Fault::kNone ? Status() : Injected(to);
}

Status MemoryStore::Remove(std::string_view name) {
  const Fault what = fault ? fault(operations_, name) : Fault::kNone;
  ++operations_;
  if (what == Fault::kFail) return Injected(name);
  objects_.erase(std::string(name));
  return what == Fault::kNone ? Status() : Injected(name);
}

}  // namespace pliant
