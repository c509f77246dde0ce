#include "operator/history/values.h"

#include <array>
#include <utility>

namespace pliant::history {
namespace {

constexpr std::array<std::string_view, kKinds> kKindNames = {"job", "held", "queue", "pool",
                                                             "node"};

constexpr std::array<std::string_view, kFields> kFieldNames = {
    "queue",      "phase",    "priority", "created",   "minGpus",      "maxGpus",
    "learners",   "desired",  "code",     "reason",    "waitingSince", "demandLearners",
    "limitedBy",  "start",    "end",      "resizes",   "restarts",     "step",
    "totalSteps", "epoch",    "loss",     "testLoss",  "accuracy",     "speed",
    "gpus",       "used",     "pool",     "ready",     "weight",       "guaranteed",
    "limit",      "entitled", "demand",   "allocated", "borrowed",     "lent",
    "waiting",    "running",  "capacity", "foreign",   "yielded",      "reserved"};
static_assert(std::to_underlying(Kind::kNode) + 1 == kKinds);
static_assert(std::to_underlying(Field::kReserved) + 1 == kFields);

}  // namespace

std::string_view ToString(Kind kind) { return kKindNames[std::to_underlying(kind)]; }
std::string_view ToString(Field field) { return kFieldNames[std::to_underlying(field)]; }

void Apply(const Change& change, Frame& frame) {
  if (change.gone) {
    frame.erase(change.subject);
    return;
  }
  Values& values = frame[change.subject];
  for (const auto& [field, value] : change.values) {
    if (value) {
      values[field] = *value;
    } else {
      values.erase(field);
    }
  }
}

}  // namespace pliant::history
