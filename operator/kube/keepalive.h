#pragma once

namespace pliant::kube {

// A connection on which nothing comes is probed from then on; after so many probes without an
// answer it is given up. Without that a watch on a path that drops packets is silent until its idle
// time is over.
inline constexpr int kProbeAfterSeconds = 15;
inline constexpr int kProbeEverySeconds = 5;
inline constexpr int kProbesMax = 3;

}  // namespace pliant::kube
