#include "operator/history/packed.h"

#include <bit>
#include <type_traits>
#include <utility>
#include <variant>

namespace pliant::history {
namespace {

void PutVarint(std::uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) out += static_cast<char>((number & 0x7f) | 0x80);
  out += static_cast<char>(number);
}

std::uint64_t TakeVarint(std::string_view& from) {
  std::uint64_t number = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return number;
  }
}

// Small numbers of both signs become small numbers.
std::uint64_t ZigZag(std::uint64_t bits) {
  return (bits << 1) ^ (std::bit_cast<std::int64_t>(bits) < 0 ? ~std::uint64_t{0} : 0);
}
std::uint64_t UnZigZag(std::uint64_t number) { return (number >> 1) ^ (~(number & 1) + 1); }

}  // namespace

std::string Pack(const Cells& cells) {
  std::string packed;
  for (const Cell& cell : cells) {
    static_assert(kFields <= 64, "the field and the type share a byte");
    packed +=
        static_cast<char>(std::to_underlying(cell.field) << 2 | std::to_underlying(cell.type));
    switch (cell.type) {
      case Cell::Type::kAbsent:
        break;
      case Cell::Type::kInteger:
        PutVarint(ZigZag(cell.bits), packed);
        break;
      case Cell::Type::kReal:
        for (int shift = 0; shift < 64; shift += 8)
          packed += static_cast<char>(cell.bits >> shift & 0xff);
        break;
      case Cell::Type::kText:
        PutVarint(cell.bits, packed);
        break;
    }
  }
  packed.shrink_to_fit();
  return packed;
}

Cells Unpack(std::string_view packed) {
  Cells cells;
  while (!packed.empty()) {
    const auto head = static_cast<unsigned char>(packed.front());
    packed.remove_prefix(1);
    Cell cell{.field = Field(head >> 2), .type = Cell::Type(head & 3)};
    switch (cell.type) {
      case Cell::Type::kAbsent:
        break;
      case Cell::Type::kInteger:
        cell.bits = UnZigZag(TakeVarint(packed));
        break;
      case Cell::Type::kReal:
        for (int byte = 0; byte < 8; ++byte) {
          cell.bits |= std::uint64_t{static_cast<unsigned char>(packed[std::size_t(byte)])}
                       << (8 * byte);
        }
        packed.remove_prefix(8);
        break;
      case Cell::Type::kText:
        cell.bits = TakeVarint(packed);
        break;
    }
    cells.push_back(cell);
  }
  return cells;
}

Cells ToCells(const Values& values, Texts& texts) {
  Cells cells;
  cells.reserve(values.size());
  for (const auto& [field, value] : values) {
    Cell cell{.field = field};
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      cell.type = Cell::Type::kInteger;
      cell.bits = std::bit_cast<std::uint64_t>(*integer);
    } else if (const auto* real = std::get_if<double>(&value)) {
      cell.type = Cell::Type::kReal;
      cell.bits = std::bit_cast<std::uint64_t>(*real);
    } else {
      cell.type = Cell::Type::kText;
      cell.bits = texts.Use(std::get<std::string>(value));
    }
    cells.push_back(cell);
  }
  return cells;
}

Value ToValue(const Cell& cell, const Texts& texts) {
  if (cell.type == Cell::Type::kInteger) return std::bit_cast<std::int64_t>(cell.bits);
  if (cell.type == Cell::Type::kReal) return std::bit_cast<double>(cell.bits);
  return texts.Of(static_cast<TextId>(cell.bits));
}

Cells Difference(const Cells& before, const Cells& after) {
  Cells changes;
  auto old = before.begin();
  for (const Cell& cell : after) {
    for (; old != before.end() && old->field < cell.field; ++old)
      changes.push_back({.field = old->field});
    const bool same = old != before.end() && *old == cell;
    if (!same) changes.push_back(cell);
    if (old != before.end() && old->field == cell.field) ++old;
  }
  for (; old != before.end(); ++old) changes.push_back({.field = old->field});
  return changes;
}

Cells Changed(const Cells& before, const Cells& changes) {
  Cells after;
  auto old = before.begin();
  for (const Cell& cell : changes) {
    for (; old != before.end() && old->field < cell.field; ++old) after.push_back(*old);
    if (old != before.end() && old->field == cell.field) ++old;
    if (cell.type != Cell::Type::kAbsent) after.push_back(cell);
  }
  after.insert(after.end(), old, before.end());
  return after;
}

}  // namespace pliant::history
