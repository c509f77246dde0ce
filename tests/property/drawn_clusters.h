#pragma once

#include <vector>

#include "operator/planner/cluster_snapshot.h"
#include "operator/planner/plan.h"

// Clusters at random, for properties. rapidcheck prints the seed and the smallest failing case that
// it finds.
namespace pliant::planner {

// All values are equally likely from the first case on; by default rapidcheck starts with small
// ones.
int Draw(int from, int to_inclusive);
bool DrawOneIn(int times);

extern const PoolView kPoolWithRacks;
// Some nodes have no zone, some no rack.
void DrawDomains(NodeView& node);
// GPUs of several products, and jobs that began on one of them, may use only one, or may use all.
void DrawProducts(ClusterSnapshot& snapshot);

// kTidy: learners of a job are alike and may run on every node, one learner is enough for a job,
// and no usable node runs more of them than it has GPUs.
enum class Disorder { kTidy, kAny };

// Clusters with everything that makes planning hard: pools, cordons, lost nodes, pods of others,
// scarce CPU, learners in all states and more of them than GPUs, and, unless kTidy, jobs with speed
// curves of any shape.
ClusterSnapshot DrawCluster(Disorder disorder = Disorder::kAny);

// Whether a job is faster with every GPU, or only with some numbers of GPUs.
enum class Sizes { kAllUseful, kAny };

// One pool of equal nodes, and jobs of one-GPU learners that can start with one learner. All jobs
// are admitted.
ClusterSnapshot DrawPlainCluster(int min_jobs = 1, Sizes sizes = Sizes::kAllUseful);

// kConcave: each learner adds no more than the one before it.
enum class Curves { kConcave, kAny };

// Makes the jobs share by speed, and gives some or all of them curves.
void DrawSpeeds(ClusterSnapshot& snapshot, Curves curves, bool of_all_jobs = false);

// Plans and carries out until a plan changes nothing, while time stands still. Returns the plans
// that changed something. Cooldowns are off, so that they do not prevent a change.
std::vector<Plan> PlansUntilRest(ClusterSnapshot snapshot, const Policy& policy = {});

}  // namespace pliant::planner
