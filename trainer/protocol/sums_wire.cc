#include "trainer/protocol/sums_wire.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace pliant {

void PutSums(WireWriter& writer, const ShardSums& sums) {
  writer.Put(sums.samples);
  writer.Put(sums.loss);
  writer.Put(sums.correct);
  writer.Put(static_cast<std::uint8_t>(sums.weight.has_value()));
  if (sums.weight) writer.Put(*sums.weight);
  writer.Put(static_cast<std::uint16_t>(sums.named.size()));
  for (const auto& [name, value] : sums.named) {
    writer.PutText(name);
    writer.Put(value);
  }
}

Result<ShardSums> ReadSums(WireReader& reader) {
  ShardSums sums;
  sums.samples = reader.Get<double>();
  sums.loss = reader.Get<double>();
  sums.correct = reader.Get<double>();
  if (reader.Get<std::uint8_t>() != 0) {
    sums.weight = reader.Get<double>();
    if (!(*sums.weight >= 0) || !std::isfinite(*sums.weight)) {
      return Invalid("sums with a weight that is no number from 0 on");
    }
  }
  const auto count = reader.Get<std::uint16_t>();
  if (count > kMaxNamedSums) return Invalid("too many named sums");
  for (std::uint16_t i = 0; i < count && reader.ok(); ++i) {
    const std::string_view name = reader.GetText();
    const auto value = reader.Get<double>() + 0.0;  // no -0.0
    if (!reader.ok()) break;
    if (!IsSumName(name)) return Invalid("a sum with an invalid name");
    if (!sums.named.emplace(name, value).second) return Invalid("two sums of one name");
  }
  return sums;
}

}  // namespace pliant
