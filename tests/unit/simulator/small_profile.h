#pragma once

#include "simulator/model/profile.h"

namespace pliant::simulator {

// An application whose times can be computed by hand. Two epochs; batches 8 and 32; local batches 4
// to 16.
// A step of one learner takes local / 8 s; each learner more adds 1 s of synchronisation, which
// holds for placements {1}, {2} and {1, 1}, and for four learners on two nodes.
ProfileTables SmallTables();
Profiles SmallProfiles();

}  // namespace pliant::simulator
