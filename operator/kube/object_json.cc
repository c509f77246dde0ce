#include "operator/kube/object_json.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pliant::kube {
namespace {

using nlohmann::json;

// Builds the value from the events of the library's parser.
class Builder final : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(std::int64_t value) override { return Put(value); }
  bool number_unsigned(std::uint64_t value) override { return Put(value); }
  bool number_float(double value, const std::string&) override { return Put(value); }
  bool string(std::string& value) override { return Put(value); }
  bool binary(json::binary_t&) override { return false; }  // JSON has none

  bool start_object(std::size_t) override { return Open(json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    if (depth_left_out_ > 0) return true;
    leaves_out_next_ = open_.back().is_metadata && name == "managedFields";
    next_is_metadata_ = name == "metadata";
    if (!leaves_out_next_) slot_ = &(*open_.back().value)[name];
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

  json Take() { return std::move(root_); }

 private:
  struct OpenValue {
    json* value = nullptr;
    bool is_metadata = false;
  };

  // Inserts the value into its parent.
  json& Place(json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return parent.back();
    }
    return *slot_ = std::move(value);
  }

  bool LeavesOut() { return std::exchange(leaves_out_next_, false) || depth_left_out_ > 0; }

  bool Put(const auto& value) {
    if (!LeavesOut()) Place(json(value));
    next_is_metadata_ = false;
    return true;
  }

  bool Open(json&& empty) {
    const bool is_metadata = std::exchange(next_is_metadata_, false);
    if (LeavesOut()) {
      ++depth_left_out_;
    } else {
      open_.push_back({.value = &Place(std::move(empty)), .is_metadata = is_metadata});
    }
    return true;
  }

  bool Close() {
    if (depth_left_out_ > 0) {
      --depth_left_out_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  json root_;
  std::vector<OpenValue> open_;  // from the root to the innermost
  json* slot_ = nullptr;         // of the last key
  bool next_is_metadata_ = false;
  bool leaves_out_next_ = false;
  int depth_left_out_ = 0;  // number of open values that are left out
};

}  // namespace

nlohmann::json ParseWithoutHistory(std::string_view text) {
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) return json(json::value_t::discarded);
  return builder.Take();
}

}  // namespace pliant::kube
