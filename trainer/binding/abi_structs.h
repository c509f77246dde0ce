#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

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

// The structs of pliant.h, and what they are here. What is wrong with one is kInvalid and named.
// Pointers in what the caller gets lead into what it was made of.
namespace pliant {

// As much as the caller knows of a struct; the rest is zero.
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

// Writes as much as the caller knows of a struct. Its size stays what the caller set.
template <typename T>
Status WriteStruct(T from, T* to, const char* name) {
  ASSIGN_OR_RETURN(const T known, ReadStruct(to, name));
  from.struct_size = known.struct_size;
  std::memcpy(to, &from, std::min(known.struct_size, sizeof from));
  return {};
}

// What the caller gives.
std::string TextOr(const char* text, const char* otherwise);
LearnerSession::Options OptionsOf(const pliant_options& options);
LearnerSession::Training TrainingOf(const pliant_training& training);
// Its bytes are where the caller said, on whatever device that is.
Result<BoundTensor> TensorOf(const pliant_tensor& tensor);
Result<GradientFormat> GradientFormatOf(std::int32_t dtype, std::int32_t device, double scale);

// What the caller gets. Its struct_size is WriteStruct's to set.
pliant_job JobOf(const LearnerEnvironment& environment, const std::string& folder);
pliant_plan PlanOf(const Schedule& schedule);
pliant_work WorkOf(const ShardTask& task);
pliant_work WorkOf(const Work& work);
pliant_end EndOf(const LearnerSession::Ending& ending);

}  // namespace pliant
