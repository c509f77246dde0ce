#pragma once

#include <vector>

namespace pliant::simulator {

// Learners of a job on each node that holds some, in the order of their ring. Each has one GPU.
using Placement = std::vector<int>;

int Learners(const Placement& placement);

// The rotation that is first in lexicographic order: {1, 2, 1} becomes {1, 1, 2}. Tables have one
// row for all rotations, because a ring of learners is as fast from any of its nodes.
Placement LeastRotation(const Placement& placement);

// Learners on as few nodes as possible: 10 on nodes of 4 GPUs are {4, 4, 2}.
Placement Packed(int learners, int gpus_per_node);

}  // namespace pliant::simulator
