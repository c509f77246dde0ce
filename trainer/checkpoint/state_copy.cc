#include "trainer/checkpoint/state_copy.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string_view>

#include "base/format.h"

namespace pliant {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t Padded(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool SameTensors(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].name != b[i].name || a[i].dtype != b[i].dtype || a[i].shape != b[i].shape ||
        a[i].bytes.size() != b[i].bytes.size())
      return false;
  return true;
}

void CopyBytes(const TensorView& from, const TensorView& to) {
  if (!from.bytes.empty()) std::memcpy(to.bytes.data(), from.bytes.data(), from.bytes.size());
}

}  // namespace

void StateCopy::Free::operator()(std::byte* memory) const { std::free(memory); }

StateCopy StateCopy::Like(const StateDict& state) {
  StateCopy copy;
  for (const TensorView& tensor : state) copy.bytes_ += Padded(tensor.bytes.size());
  // calloc, because the system then zeroes each page only when it is first written: to zero many
  // gigabytes at once would block the caller.
  std::size_t room = copy.bytes_ + kAlignment;
  copy.memory_.reset(static_cast<std::byte*>(std::calloc(room, 1)));
  if (copy.memory_ == nullptr) throw std::bad_alloc();
  copy.view_ = state;
  void* aligned = copy.memory_.get();
  auto* next = static_cast<std::byte*>(std::align(kAlignment, copy.bytes_, aligned, room));
  for (TensorView& tensor : copy.view_) {
    const std::size_t bytes = tensor.bytes.size();
    tensor.bytes = {next, bytes};
    next += Padded(bytes);
  }
  return copy;
}

StateCopy StateCopy::Of(const StateDict& state) {
  StateCopy copy;
  copy.CopyFrom(state);
  return copy;
}

void StateCopy::CopyFrom(const StateDict& state) {
  if (!SameTensors(view_, state)) *this = Like(state);
  for (std::size_t i = 0; i < state.size(); ++i) CopyBytes(state[i], view_[i]);
}

Status CopyState(const StateDict& from, const StateDict& to) {
  std::map<std::string_view, const TensorView*> by_name;
  for (const TensorView& tensor : from) by_name.emplace(tensor.name, &tensor);
  for (const TensorView& tensor : to) {
    const auto found = by_name.find(tensor.name);
    if (found == by_name.end())
      return Invalid(Format("tensor {} of the model is missing in the state", tensor.name));
    const TensorView& source = *found->second;
    if (source.dtype != tensor.dtype || source.shape != tensor.shape ||
        source.bytes.size() != tensor.bytes.size())
      return Invalid(Format("tensor {} is {} [{}] in the state, and {} [{}] in the model",
                            tensor.name, ToString(source.dtype), ShapeText(source.shape),
                            ToString(tensor.dtype), ShapeText(tensor.shape)));
  }
  if (from.size() != to.size()) {
    for (const TensorView& tensor : to) by_name.erase(tensor.name);
    return Invalid(by_name.empty() ? std::string("the state names a tensor twice")
                                   : Format("tensor {} of the state is not in the model",
                                            by_name.begin()->first));
  }
  for (const TensorView& tensor : to) CopyBytes(*by_name.at(tensor.name), tensor);
  return {};
}

std::string ShapeText(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t extent : shape)
    text += (text.empty() ? "" : ",") + std::to_string(extent);
  return text;
}

}  // namespace pliant
