#include "tests/device/small_program.h"

#include <array>

#include "base/check.h"

namespace pliant {
namespace {

constexpr std::array<std::size_t, 3> kSizes = {3000, 5, 2049};
constexpr std::size_t kMean = 7;
constexpr float kScale = 1.5F;

void Must(pliant_status status) { CHECK(status == PLIANT_OK, pliant_last_error()); }

std::vector<float> Initial(std::size_t elements) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i % 13) * 0.07F - 0.4F;
  return values;
}

}  // namespace

SmallProgram::Outcome SmallProgram::Train(Machine& machine, const Options& options) {
  SmallProgram program(machine, options);
  Outcome outcome = program.Run();
  pliant_close(program.learner_);
  return outcome;
}

SmallProgram::SmallProgram(Machine& machine, const Options& options)
    : machine_(machine), options_(options) {
  const pliant_options given = {.struct_size = sizeof given,
                                .name = "small",
                                .framework = "none 1",
                                .checkpoint_dir = options.checkpoint_dir};
  Must(pliant_open(&given, &learner_));
  const pliant_training training = {.struct_size = sizeof training,
                                    .train_samples = options.train_samples,
                                    .test_samples = 5,
                                    .epochs = options.epochs,
                                    .global_batch_size = options.batch_size,
                                    .logical_shards = options.logical_shards};
  Must(pliant_describe(learner_, &training));
  for (const std::size_t size : kSizes) {
    const std::vector<float> zeros(size);
    tensors_.push_back({.elements = size,
                        .value = machine.New(Initial(size)),
                        .momentum = machine.New(zeros),
                        .gradient = machine.New(zeros)});
    const std::string number = std::to_string(tensors_.size());
    Register("model.w" + number, PLIANT_PARAMETER, size, tensors_.back().value);
    Register("optimizer.m" + number, PLIANT_STATE, size, tensors_.back().momentum);
  }
  mean_ = machine.New(Initial(kMean));
  Register("model.mean", PLIANT_BUFFER, kMean, mean_);
  loss_ = machine.NewDoubles(8);
  if (machine.device() == PLIANT_CUDA) Must(pliant_use_stream(learner_, machine.stream()));
  Must(pliant_start(learner_));
}

void SmallProgram::Register(const std::string& name, std::int32_t role, std::size_t elements,
                            float* data) {
  const auto shape = static_cast<std::int64_t>(elements);
  const pliant_tensor tensor = {.struct_size = sizeof tensor,
                                .name = name.c_str(),
                                .role = role,
                                .dtype = PLIANT_FLOAT32,
                                .dimensions = 1,
                                .device = machine_.device(),
                                .shape = &shape,
                                .data = data};
  Must(pliant_register(learner_, &tensor, nullptr));
}

SmallProgram::Outcome SmallProgram::Run() {
  Outcome outcome;
  for (;;) {
    pliant_work work{.struct_size = sizeof work};
    Must(pliant_next(learner_, -1, &work));
    if (work.kind == PLIANT_END) break;
    if (work.kind == PLIANT_LOADED) {
      ++outcome.loaded;
      Must(pliant_loaded(learner_));
    } else if (work.kind == PLIANT_COMMIT) {
      outcome.loss_sum = work.loss_sum;
      outcome.correct_sum = work.correct_sum;
      outcome.weight_sum = work.weight_sum;
      for (std::int32_t i = 0; i < work.sum_count; ++i)
        outcome.sums[work.sum_names[i]] = work.sum_values[i];
      Commit(work);
    } else {
      Compute(work);
    }
  }
  pliant_end end{.struct_size = sizeof end};
  Must(pliant_get_end(learner_, &end));
  outcome.reason = end.reason;
  outcome.exit_code = end.exit_code;
  outcome.step = end.step;
  outcome.message = end.message;
  outcome.sha256 = end.parameters_sha256;
  return outcome;
}

void SmallProgram::Compute(const pliant_work& work) {
  const auto count = static_cast<float>(work.sample_count);
  if (work.kind == PLIANT_EVALUATE) {
    machine_.Squares(tensors_[0].value, kMean * work.sample_count, loss_);
    return Answer(work);
  }
  CHECK(work.device == machine_.device(), "gradients are where the parameters are");
  float sum = options_.error;
  for (std::size_t i = 0; i < work.sample_count; ++i)
    sum += static_cast<float>(work.samples[i] % 7);
  for (const Tensor& tensor : tensors_) {
    machine_.Axpy(tensor.gradient, nullptr, tensor.value, 0.3F * count, tensor.elements);
    if (tensor.elements < kMean) continue;
    machine_.Axpy(tensor.gradient, tensor.gradient, mean_, sum, kMean);
  }
  std::array<const void*, kSizes.size()> gradients = {};
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = tensors_[i].gradient;
  if (work.shard % 3 == 1) gradients[1] = nullptr;  // this shard does not use it
  if (work.travels_early != 0) {
    for (std::size_t i = gradients.size(); i-- > 0;) {
      if (gradients[i] == nullptr) continue;
      Must(pliant_put_gradient(learner_, static_cast<std::int32_t>(i), gradients[i], PLIANT_FLOAT32,
                               machine_.device(), kScale));
    }
  } else {
    Must(pliant_put_gradients(learner_, gradients.data(), PLIANT_FLOAT32, machine_.device(),
                              kScale));
  }
  // The program may change what it has handed in.
  for (const Tensor& tensor : tensors_)
    machine_.Axpy(tensor.gradient, nullptr, tensor.value, -1, tensor.elements);
  machine_.Axpy(mean_, nullptr, mean_, 0.9F, kMean);
  machine_.Axpy(mean_, mean_, tensors_[0].value, 0.01F * sum, kMean);
  machine_.Squares(tensors_[2].value, 2048, loss_);
  Answer(work);
}

// The first lanes of the loss stand for loss, correct and the named sums.
void SmallProgram::Answer(const pliant_work& work) {
  const auto samples = static_cast<double>(work.sample_count);
  const bool on_gpu = machine_.device() == PLIANT_CUDA;
  if (options_.weighs) {
    const std::array<const char*, 2> names = {"a", "b"};
    const pliant_sums sums = {.struct_size = sizeof sums,
                              .weighs = 1,
                              .count = 2,
                              .weight = samples + work.shard % 3,
                              .names = names.data(),
                              .values = on_gpu ? nullptr : loss_ + 2};
    Must(pliant_report_sums(learner_, &sums));
  }
  if (on_gpu) {
    Must(pliant_shard_done_on(learner_, samples, loss_));
  } else {
    Must(pliant_shard_done(learner_, samples, loss_[0], loss_[1]));
  }
}

void SmallProgram::Commit(const pliant_work& work) {
  // As a program may: a decision by a sum over all learners.
  const float rate = work.loss_sum > 60 ? 0.01F : 0.02F;
  const auto factor = static_cast<float>(work.mean_factor);
  const float* reduced = work.reduced;
  for (const Tensor& tensor : tensors_) {
    machine_.Axpy(tensor.momentum, nullptr, tensor.momentum, 0.9F, tensor.elements);
    machine_.Axpy(tensor.momentum, tensor.momentum, reduced, factor, tensor.elements);
    machine_.Axpy(tensor.value, tensor.value, tensor.momentum, -rate, tensor.elements);
    reduced += tensor.elements;
  }
  if (options_.on_commit) options_.on_commit(learner_, work);
  Must(pliant_committed(learner_, 1));
}

}  // namespace pliant
