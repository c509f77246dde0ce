#include "trainer/protocol/state_check.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace pliant {
namespace {

TEST(DifferingRanks, AreThoseThatMostDoNotAgreeWith) {
  const auto none = std::nullopt;
  const struct {
    std::vector<std::optional<int>> states;
    std::vector<int> want;
  } kCases[] = {
      {.states = {}, .want = {}},
      {.states = {7}, .want = {}},
      {.states = {7, 7, 7}, .want = {}},
      {.states = {none, none}, .want = {}},
      {.states = {7, none, 7}, .want = {}},
      {.states = {7, 8}, .want = {1}},
      {.states = {7, 8, 8}, .want = {0}},
      {.states = {7, 7, 8}, .want = {2}},
      {.states = {7, 8, 7, 8}, .want = {1, 3}},
      {.states = {9, 8, 7, 8}, .want = {0, 2}},
      {.states = {none, 0, 8, 8}, .want = {1}},
  };
  for (const auto& c : kCases) {
    std::vector<std::optional<StateDigest>> digests;
    for (const std::optional<int>& state : c.states) {
      auto& digest = digests.emplace_back();
      if (state) digest = {.runtime = 1, .tensors = {4, static_cast<std::uint64_t>(*state)}};
    }
    EXPECT_EQ(DifferingRanks(digests), c.want) << testing::PrintToString(c.states);
  }
}

TEST(RuntimeChecksum, ContainsWhatTheRuntimeKeeps) {
  const NoiseWindow noise{.trace = 1, .square = 2, .steps = 3};
  const std::uint64_t checksum = RuntimeChecksum(noise, {});
  EXPECT_EQ(RuntimeChecksum(noise, {}), checksum);
  EXPECT_NE(RuntimeChecksum(noise, {{.epoch = 1, .doublings = 1}}), checksum);
  EXPECT_NE(RuntimeChecksum({.trace = 1.5, .square = 2, .steps = 3}, {}), checksum);
  EXPECT_NE(RuntimeChecksum({.trace = 1, .square = -2, .steps = 3}, {}), checksum);
  EXPECT_NE(RuntimeChecksum({.trace = 1, .square = 2, .steps = 4}, {}), checksum);
}

// The state of a program, with JSON among it.
struct StateWith {
  explicit StateWith(std::string_view json, std::byte weight = {}, std::byte average = {},
                     std::byte buffer = {}) {
    bytes[0] = {weight, std::byte{9}};
    bytes[1].resize(8);
    const std::uint64_t length = json.size();
    std::memcpy(bytes[1].data(), &length, sizeof(length));
    for (const char c : json) bytes[1].push_back(static_cast<std::byte>(c));
    bytes[1].resize(200);
    bytes[2] = {average};
    bytes[3] = {buffer};
    const char* const names[] = {"model.w", "python.json", "python.registered.average",
                                 "buffers.mask"};
    for (std::size_t i = 0; i < std::size(names); ++i) {
      state.push_back({.name = names[i],
                       .dtype = DType::kUInt8,
                       .shape = {std::ssize(bytes[i])},
                       .bytes = bytes[i]});
    }
  }

  std::vector<std::byte> bytes[4];
  StateDict state;
};

TEST(StateDigest, ChangesWithAnyBit) {
  StateWith with("{}");
  const StateDigest before = *DigestOf(with.state);
  EXPECT_EQ(*DigestOf(with.state), before);
  EXPECT_EQ(before.text, "{}");
  for (auto& bytes : with.bytes) {
    for (std::byte& byte : bytes) {
      byte ^= std::byte{4};
      EXPECT_NE(DigestOf(with.state)->tensors, before.tensors);
      byte ^= std::byte{4};
    }
  }
}

TEST(StateDigest, LeavesOutWhatMayDiffer) {
  std::vector<std::byte> bytes(3);
  const StateDict state = {
      {.name = "local.passes", .dtype = DType::kUInt8, .shape = {3}, .bytes = bytes}};
  const StateDigest before = *DigestOf(state);
  bytes[1] = std::byte{1};
  EXPECT_EQ(*DigestOf(state), before);
}

TEST(StateDigest, HasNoTextThatIsDamagedOrLong) {
  StateWith with("{}");
  for (const std::uint64_t length :
       {std::uint64_t{193}, StateDigest::kMaxText + 1, ~std::uint64_t{0}}) {
    std::memcpy(with.bytes[1].data(), &length, sizeof(length));
    EXPECT_EQ(DigestOf(with.state)->text, "") << length;
  }
}

TEST(StateMismatch, NamesWhatDiffers) {
  constexpr std::byte kOther{1};
  const std::string deep(200, '[');
  const struct {
    const char* name;
    StateWith own, other;
    StateMismatch want;
  } kCases[] = {
      {"a parameter", StateWith("{}"), StateWith("{}", kOther), {.name = "model.w"}},
      {"a buffer", StateWith("{}"), StateWith("{}", {}, {}, kOther), {.name = "buffers.mask"}},
      {"what the program computes itself comes first",
       StateWith("{}"),
       StateWith("{}", kOther, kOther),
       {.name = "python.registered.average", .of_program = true}},
      {"a number",
       StateWith(R"({"optimizer":{"param_groups":[{"lr":0.5}]}})"),
       StateWith(R"({"optimizer":{"param_groups":[{"lr":0.25}]}})", kOther, kOther),
       {"optimizer.param_groups[0].lr", "0.5", "0.25", true}},
      {"what only one has",
       StateWith(R"({"modes":{"":true}})"),
       StateWith(R"({"modes":{"":true,"1":false}})"),
       {"modes.1", "absent", "false", true}},
      {"in a tuple",
       StateWith(R"({"a":{"__pliant__":"tuple","items":[1,2]}})"),
       StateWith(R"({"a":{"__pliant__":"tuple","items":[1,3]}})"),
       {"a[1]", "2", "3", true}},
      {"of another length",
       StateWith(R"({"a":[1]})"),
       StateWith(R"({"a":[1,3]})"),
       {"a", "[1]", "[1,3]", true}},
      {"only the order",
       StateWith(R"({"a":1,"b":2})"),
       StateWith(R"({"b":2,"a":1})"),
       {.name = "python.json", .of_program = true}},
      {"no JSON", StateWith("{}"), StateWith("{"), {.name = "python.json", .of_program = true}},
      {"too deep",
       StateWith("{}"),
       StateWith(deep.substr(0, 150)),
       {.name = "python.json", .of_program = true}},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    const StateMismatch found =
        MismatchOf(c.own.state, *DigestOf(c.own.state), *DigestOf(c.other.state));
    EXPECT_EQ(found.name, c.want.name);
    EXPECT_EQ(found.own, c.want.own);
    EXPECT_EQ(found.other, c.want.other);
    EXPECT_EQ(found.of_program, c.want.of_program);
  }
  const StateWith same("{}");
  StateDigest own = *DigestOf(same.state);
  const StateDigest other = own;
  own.runtime = 1;
  EXPECT_EQ(MismatchOf(same.state, own, other).name, "noise scale or batch size");
  own.tensors.clear();
  EXPECT_EQ(MismatchOf(same.state, own, other).name, "noise scale or batch size");
}

}  // namespace
}  // namespace pliant
