#include "tests/unit/simulator/small_profile.h"

#include <utility>

namespace pliant::simulator {
namespace {

StepTime TimeOf(int learners, int local) {
  const double sync = learners - 1;
  return {.step = local / 8.0 + sync, .sync = sync};
}

MeasuredPlacement Measured(Placement placement) {
  const int learners = Learners(placement);
  return {.placement = std::move(placement),
          .points = {{.local = 4, .time = TimeOf(learners, 4)},
                     {.local = 16, .time = TimeOf(learners, 16)}}};
}

MeasuredSize Sized(int nodes, int learners, int local) {
  return {.nodes = nodes, .learners = learners, .local = local, .time = TimeOf(learners, local)};
}

}  // namespace

ProfileTables SmallTables() {
  return {
      .application = "small",
      .epochs = 2,
      .min_local = 4,
      .max_local = 16,
      .max_gpus = {},
      .placements = {Measured({1}), Measured({2}), Measured({1, 1})},
      .scalability = {Sized(2, 4, 4), Sized(2, 4, 16)},
      .extra = {},
      .validations = {
          {.batch = 8,
           .epochs =
               {{.progress = 100, .iterations = 100, .gradients = {.square = 1, .variance = 3}},
                {.progress = 220, .iterations = 220, .gradients = {.square = 0, .variance = 2}}}},
          {.batch = 32,
           .epochs = {
               {.progress = 120, .iterations = 40, .gradients = {.square = 5, .variance = 3}},
               {.progress = 200, .iterations = 80, .gradients = {.square = 0, .variance = 2}}}}}};
}

Profiles SmallProfiles() { return Profiles({Profile(SmallTables())}); }

}  // namespace pliant::simulator
