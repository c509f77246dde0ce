#include "trainer/binding/abi_structs.h"

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <variant>

#include "base/overloaded.h"

namespace pliant {
namespace {

constexpr std::int32_t kMaxDimensions = 64;

// A struct that the caller fills in ends with its last field. A new field in padding would not
// change the size, and the padding of an older caller, which may hold anything, would be read.
static_assert(sizeof(pliant_options) == offsetof(pliant_options, keep_freed_memory) + 4);
static_assert(sizeof(pliant_training) == offsetof(pliant_training, checkpoint_every_steps) + 8);
static_assert(sizeof(pliant_final) == offsetof(pliant_final, file_sizes) + sizeof(void*));
static_assert(sizeof(pliant_sums) == offsetof(pliant_sums, values) + sizeof(void*));
static_assert(sizeof(pliant_tensor) == offsetof(pliant_tensor, data) + sizeof(void*));

Result<TensorRole> RoleOf(std::int32_t role) {
  switch (role) {
    case PLIANT_PARAMETER:
      return TensorRole::kParameter;
    case PLIANT_BUFFER:
      return TensorRole::kBuffer;
    case PLIANT_STATE:
      return TensorRole::kState;
    case PLIANT_HOME:
      return TensorRole::kHome;
    default:
      return Invalid(
          Format("tensor->role is {}: it must be PLIANT_PARAMETER, PLIANT_BUFFER, PLIANT_STATE or "
                 "PLIANT_HOME",
                 role));
  }
}

Result<DType> DTypeOf(std::int32_t dtype) {
  switch (dtype) {
    case PLIANT_FLOAT32:
      return DType::kFloat32;
    case PLIANT_FLOAT64:
      return DType::kFloat64;
    case PLIANT_FLOAT16:
      return DType::kFloat16;
    case PLIANT_BFLOAT16:
      return DType::kBFloat16;
    case PLIANT_INT64:
      return DType::kInt64;
    case PLIANT_INT32:
      return DType::kInt32;
    case PLIANT_UINT8:
      return DType::kUInt8;
    case PLIANT_BOOL:
      return DType::kBool;
    case PLIANT_INT8:
      return DType::kInt8;
    case PLIANT_INT16:
      return DType::kInt16;
    case PLIANT_FLOAT8_E4M3:
      return DType::kFloat8E4M3;
    case PLIANT_FLOAT8_E5M2:
      return DType::kFloat8E5M2;
    default:
      return Invalid(
          Format("dtype is {}: it must be one of PLIANT_FLOAT32 to PLIANT_FLOAT8_E5M2", dtype));
  }
}

Status CheckDevice(std::int32_t device) {
  if (device == PLIANT_CPU || device == PLIANT_CUDA) return {};
  return Invalid(Format("device is {}: it must be PLIANT_CPU or PLIANT_CUDA", device));
}

std::int32_t ReasonOf(const LearnerSession::Ending& ending) {
  if (ending.interrupted) return PLIANT_INTERRUPTED;
  switch (ending.reason) {
    case LeftReason::kCompleted:
      return PLIANT_COMPLETED;
    case LeftReason::kDrained:
      return PLIANT_DRAINED;
    case LeftReason::kFailed:
      return PLIANT_LEARNER_FAILED;
  }
  return PLIANT_LEARNER_FAILED;
}

pliant_work WorkOf(std::int32_t kind, std::uint64_t epoch, std::uint64_t step,
                   const ShardSums& sums) {
  pliant_work work{};
  work.kind = kind;
  work.epoch = epoch;
  work.step = step;
  work.samples_sum = sums.samples;
  work.loss_sum = sums.loss;
  work.correct_sum = sums.correct;
  work.weight_sum = sums.total_weight();
  return work;
}

}  // namespace

std::string TextOr(const char* text, const char* otherwise) {
  return text != nullptr ? text : otherwise;
}

LearnerSession::Options OptionsOf(const pliant_options& options) {
  return {.name = TextOr(options.name, "program"),
          .framework = TextOr(options.framework, "unknown"),
          .gpu_problem = TextOr(options.gpu_problem, ""),
          .checkpoint_dir = options.checkpoint_dir != nullptr
                                ? std::optional<std::filesystem::path>(options.checkpoint_dir)
                                : std::nullopt,
          .take_signals = options.leave_signals == 0,
          .keep_freed_memory = options.keep_freed_memory != 0};
}

LearnerSession::Training TrainingOf(const pliant_training& training) {
  LearnerSession::Training described = {
      .train_samples = training.train_samples,
      .test_samples = training.test_samples,
      .epochs = training.epochs,
      .settings = {.last_batch = training.drop_last != 0 ? LastBatch::kDrop : LastBatch::kKeep,
                   .order = training.in_order != 0 ? DataOrder::kAsItLies : DataOrder::kShuffled},
      .wants_evaluation_results = training.wants_evaluation_results != 0,
      .base = {.sha256 = TextOr(training.base, ""), .name = TextOr(training.base_name, "")},
      .max_steps = training.max_steps,
      .evaluate_every = training.evaluate_every};
  ProgramSettings& settings = described.settings;
  if (training.global_batch_size != 0) settings.global_batch_size = training.global_batch_size;
  if (training.logical_shards != 0) settings.logical_shards = training.logical_shards;
  if (training.has_seed != 0) settings.seed = training.seed;
  if (training.checkpoint_every_steps != 0) {
    settings.checkpoint_every_steps = training.checkpoint_every_steps;
  }
  return described;
}

Result<BoundTensor> TensorOf(const pliant_tensor& tensor) {
  if (tensor.name == nullptr || *tensor.name == '\0') return Invalid("tensor->name is missing");
  const std::string name = tensor.name;
  const auto wrong = [&](std::string_view what) {
    return Invalid(Format("tensor {}: {}", name, what));
  };
  RETURN_IF_ERROR(CheckDevice(tensor.device));
  ASSIGN_OR_RETURN(const TensorRole role, RoleOf(tensor.role));
  if (role == TensorRole::kParameter && !name.starts_with(kModelPrefix)) {
    return wrong(
        "a parameter's name must begin with \"model.\": otherwise the final model would lack "
        "it, and learners would not compare it");
  }
  ASSIGN_OR_RETURN(const DType dtype, DTypeOf(tensor.dtype));
  if (tensor.dimensions < 0 || tensor.dimensions > kMaxDimensions)
    return wrong("dimensions must be from 0 to 64");
  if (tensor.dimensions > 0 && tensor.shape == nullptr) return wrong("shape is NULL");
  BoundTensor bound = {.view = {.name = name, .dtype = dtype, .shape = {}, .bytes = {}},
                       .role = role};
  std::size_t bytes = SizeOf(dtype);
  for (std::int32_t i = 0; i < tensor.dimensions; ++i) {
    const std::int64_t extent = tensor.shape[i];
    if (extent < 0) return wrong("its shape has a negative extent");
    if (extent > 0 &&
        bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::size_t>(extent)) {
      return wrong("its shape is too large: the size in bytes must be below 2^63");
    }
    bytes *= static_cast<std::size_t>(extent);
    bound.view.shape.push_back(extent);
  }
  if (bytes > 0 && tensor.data == nullptr) return wrong("data is NULL");
  bound.view.bytes = {static_cast<std::byte*>(tensor.data), bytes};
  return bound;
}

Result<ReportedSums> SumsOf(const pliant_sums& sums) {
  ReportedSums reported{.follow = sums.values == nullptr};
  if (sums.weighs != 0) {
    if (!(sums.weight >= 0) || !std::isfinite(sums.weight)) {
      return Invalid(Format(
          "weight is {}: it must be a number ≥ 0, the tokens or samples that the loss is the mean "
          "of",
          sums.weight));
    }
    reported.weight = sums.weight;
  }
  if (sums.count < 0 || static_cast<std::size_t>(sums.count) > kMaxNamedSums) {
    return Invalid(Format("{} named sums: at most {} are possible", sums.count, kMaxNamedSums));
  }
  if (sums.count > 0 && sums.names == nullptr) return Invalid("sums->names is NULL");
  std::string_view last;
  for (std::int32_t i = 0; i < sums.count; ++i) {
    const std::string_view name = sums.names[i] != nullptr ? sums.names[i] : "";
    if (!IsSumName(name)) {
      return Invalid(Format(
          "a sum is named \"{}\": give a name of 1 to {} letters, digits and \"_-./\", other "
          "than samples, weight, loss, correct and accuracy",
          name.substr(0, kMaxSumName), kMaxSumName));
    }
    if (name <= last) return Invalid("the names of the sums are not in ascending order");
    last = name;
    const double value = reported.follow ? 0 : sums.values[i];
    reported.named.emplace(name, value + 0.0);  // no -0.0
  }
  return reported;
}

Result<FinalLayout> FinalLayoutOf(const pliant_final& final) {
  FinalLayout layout;
  if (final.stem != nullptr) layout.stem = final.stem;
  if (final.file_bytes != 0) layout.file_bytes = final.file_bytes;
  if (final.tensor_count < 0 || final.file_count < 0) {
    return Invalid("final: a number of tensors or files is negative");
  }
  if (final.tensors != nullptr) {
    if (final.names == nullptr) return Invalid("final->names is NULL");
    layout.names.emplace();
    for (std::int32_t i = 0; i < final.tensor_count; ++i) {
      if (final.tensors[i] == nullptr || final.names[i] == nullptr) {
        return Invalid(Format("final: the name of tensor {} is NULL", i));
      }
      if (!layout.names->emplace(final.tensors[i], final.names[i]).second) {
        return Invalid(Format("final: {} is named twice", final.tensors[i]));
      }
    }
  }
  for (std::int32_t i = 0; i < final.file_count; ++i) {
    if (final.files == nullptr || final.file_texts == nullptr || final.file_sizes == nullptr ||
        final.files[i] == nullptr || final.file_texts[i] == nullptr) {
      return Invalid(Format("final: file {} is NULL", i));
    }
    layout.texts.push_back(
        {.name = final.files[i], .text = std::string(final.file_texts[i], final.file_sizes[i])});
  }
  RETURN_IF_ERROR(CheckFinalLayout(layout));
  return layout;
}

Result<GradientFormat> GradientFormatOf(std::int32_t dtype, std::int32_t device, double scale) {
  RETURN_IF_ERROR(CheckDevice(device));
  GradientFormat format{.on_device = device == PLIANT_CUDA, .scale = scale};
  switch (dtype) {
    case PLIANT_FLOAT32:
      format.dtype = DType::kFloat32;
      return format;
    case PLIANT_FLOAT64:
      format.dtype = DType::kFloat64;
      return format;
    case PLIANT_FLOAT16:
      format.dtype = DType::kFloat16;
      return format;
    case PLIANT_BFLOAT16:
      format.dtype = DType::kBFloat16;
      return format;
    default:
      return Invalid(
          Format("a gradient's dtype is {}: it must be PLIANT_FLOAT32, PLIANT_FLOAT64, "
                 "PLIANT_FLOAT16 or PLIANT_BFLOAT16",
                 dtype));
  }
}

pliant_job JobOf(const LearnerEnvironment& environment, const std::string& folder) {
  pliant_job job{};
  job.alone = environment.coordinator ? 0 : 1;
  job.bitwise = environment.reproducibility == Reproducibility::kBitwise ? 1 : 0;
  job.max_learners = MaxLearnersOf(environment);
  job.logical_shards = environment.logical_shards.value_or(0);
  job.global_batch_size = environment.global_batch_size.value_or(0);
  job.seed = environment.seed.value_or(0);
  job.has_seed = environment.seed ? 1 : 0;
  job.job = environment.job.c_str();
  job.learner = environment.learner.c_str();
  job.checkpoint_dir = folder.c_str();
  return job;
}

pliant_plan PlanOf(const Schedule& schedule) {
  pliant_plan plan{};
  plan.global_batch_size = schedule.spec().global_batch_size;
  plan.steps_per_epoch = schedule.steps_per_epoch();
  plan.total_steps = schedule.total_steps();
  plan.seed = schedule.spec().seed;
  plan.logical_shards = schedule.spec().logical_shards;
  return plan;
}

pliant_work WorkOf(const ShardTask& task) {
  pliant_work work{};
  work.kind = task.kind == TickKind::kTrain ? PLIANT_TRAIN : PLIANT_EVALUATE;
  work.shard = task.shard;
  work.epoch = task.epoch;
  work.step = task.step;
  work.samples = task.samples.data();
  work.sample_count = task.samples.size();
  work.seed = task.seed;
  work.last = task.last_of_kind ? 1 : 0;
  return work;
}

pliant_work WorkOf(const Work& from) {
  return std::visit(Overloaded{[](const ShardWork& shard) {
                                 pliant_work work = WorkOf(*shard.task);
                                 work.gradient = shard.gradient.data();
                                 work.gradient_elements = shard.gradient.size();
                                 work.travels_early = shard.sink != nullptr ? 1 : 0;
                                 return work;
                               },
                               [](const CommitTask& commit) {
                                 pliant_work work =
                                     WorkOf(PLIANT_COMMIT, commit.epoch, commit.step, commit.sums);
                                 work.reduced = commit.gradient.data();
                                 work.gradient_elements = commit.gradient.size();
                                 work.last = commit.last_of_epoch ? 1 : 0;
                                 work.doublings = commit.doublings;
                                 work.mean_factor = commit.mean_factor;
                                 work.first = commit.first ? 1 : 0;
                                 work.schedule_step = commit.schedule_step;
                                 return work;
                               },
                               [](const EvaluationTask& evaluation) {
                                 pliant_work work = WorkOf(PLIANT_EVALUATED, evaluation.epoch,
                                                           evaluation.step, evaluation.sums);
                                 work.first = evaluation.first ? 1 : 0;
                                 return work;
                               },
                               [](const LoadedWork&) {
                                 pliant_work work{};
                                 work.kind = PLIANT_LOADED;
                                 return work;
                               }},
                    from);
}

void ShownSums::Show(const Work& work, pliant_work& to) {
  names_.clear();
  values_.clear();
  const auto show = [&](const ShardSums& sums) {
    for (const auto& [name, value] : sums.named) {
      names_.push_back(name.c_str());
      values_.push_back(value);
    }
  };
  if (const auto* const commit = std::get_if<CommitTask>(&work)) show(commit->sums);
  if (const auto* const evaluation = std::get_if<EvaluationTask>(&work)) show(evaluation->sums);
  to.sum_names = names_.data();
  to.sum_values = values_.data();
  to.sum_count = static_cast<std::int32_t>(names_.size());
}

pliant_end EndOf(const LearnerSession::Ending& ending) {
  pliant_end end{};
  end.reason = ReasonOf(ending);
  end.exit_code = ending.exit_code;
  end.step = ending.step;
  end.message = ending.message.c_str();
  end.parameters_sha256 = ending.parameters_sha256.c_str();
  return end;
}

}  // namespace pliant
