#pragma once

#include "base/result.h"
#include "trainer/data/shard_sums.h"
#include "trainer/protocol/wire.h"

namespace pliant {

void PutSums(WireWriter& writer, const ShardSums& sums);

// kInvalid: a peer may not send these. Past the end of the payload the reader is not ok().
Result<ShardSums> ReadSums(WireReader& reader);

}  // namespace pliant
