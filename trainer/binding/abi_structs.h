#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "trainer/binding/bound_program.h"
#include "trainer/binding/gradient_intake.h"
#include "trainer/binding/learner_session.h"
#include "trainer/binding/pliant.h"
#include "trainer/data/schedule.h"
#include "trainer/data/shard.h"
#include "trainer/process/learner_environment.h"
#include "trainer/runtime/operation.h"

// Conversion between the structs of pliant.h and this library's types. A wrong value is kInvalid,
// and the message names the field. Pointers in a struct for the caller point into the value that it
// was made from.
namespace pliant {

// Copies the fields that the caller's version of the struct has; the rest is zero.
template <typename T>
Result<T> ReadStruct(const T* from, const char* name) {
  if (from == nullptr) return Invalid(Format("{} is NULL", name));
  T copy{};
  std::size_t size = 0;
  std::memcpy(&size, from, sizeof size);
  if (size < sizeof size) {
    return Invalid(Format("{}->struct_size is {}: it must be its sizeof", name, size));
  }
  std::memcpy(&copy, from, std::min(size, sizeof copy));
  return copy;
}

// Writes the fields that the caller's version of the struct has. Its struct_size stays unchanged.
template <typename T>
Status WriteStruct(T from, T* to, const char* name) {
  ASSIGN_OR_RETURN(const T known, ReadStruct(to, name));
  from.struct_size = known.struct_size;
  std::memcpy(to, &from, std::min(known.struct_size, sizeof from));
  return {};
}

// From the caller.
std::string TextOr(const char* text, const char* otherwise);
LearnerSession::Options OptionsOf(const pliant_options& options);
LearnerSession::Training TrainingOf(const pliant_training& training);
// The tensor's bytes are the caller's memory, which may be on a device.
Result<BoundTensor> TensorOf(const pliant_tensor& tensor);
Result<FinalLayout> FinalLayoutOf(const pliant_final& final);
Result<ReportedSums> SumsOf(const pliant_sums& sums);
Result<GradientFormat> GradientFormatOf(std::int32_t dtype, std::int32_t device, double scale);

// To the caller. WriteStruct sets struct_size.
pliant_job JobOf(const LearnerEnvironment& environment, const std::string& folder);
pliant_plan PlanOf(const Schedule& schedule);
pliant_work WorkOf(const ShardTask& task);
pliant_work WorkOf(const Work& work);
// The named sums of a work, for as long as that is shown.
class ShownSums {
 public:
  // `to` points into this object and into `work`.
  void Show(const Work& work, pliant_work& to);

 private:
  std::vector<const char*> names_;
  std::vector<double> values_;
};
pliant_end EndOf(const LearnerSession::Ending& ending);

}  // namespace pliant
