#include "trainer/learner/torch_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <format>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "trainer/learner/network.h"
#include "trainer/learner/sgd.h"

namespace pliant::learner {
namespace {

// The number of threads decides how sums inside a kernel are cut, so it is part of the result.
void UseOneThreadDeterministically() {
  static const bool once = [] {
    at::set_num_threads(1);
    at::set_num_interop_threads(1);
    // OpenBLAS built on pthreads does not listen to the OpenMP call that torch makes.
    using SetThreads = void (*)(int);
    if (auto* set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
      set(1);
    }
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    // That also fills fresh memory, which only shows reads of what was never written: no kernel
    // that is used here has them, and every temporary would be written twice.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    return true;
  }();
  CHECK(once, "runs before the first tensor");
}

struct Batch {
  at::Tensor images;
  at::Tensor labels;
};

Batch Gather(const Samples& from, const std::vector<std::uint64_t>& indices, const Shape& shape) {
  const auto count = static_cast<std::int64_t>(indices.size());
  Shape batch_shape = {count};
  batch_shape.insert(batch_shape.end(), shape.begin(), shape.end());
  Batch batch = {at::empty(batch_shape, at::kFloat), at::empty({count}, at::kLong)};
  float* image = batch.images.data_ptr<float>();
  std::int64_t* label = batch.labels.data_ptr<std::int64_t>();
  for (const std::uint64_t index : indices) {
    CHECK(index < from.count(), "the sampler knows how many samples there are");
    image = std::copy_n(&from.pixels[index * kDigitPixels], kDigitPixels, image);
    *label++ = from.labels[index];
  }
  return batch;
}

// Torch's errors carry a backtrace; people read the sentence.
std::string Sentence(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

void Copy(std::span<const std::byte> from, std::span<std::byte> to) {
  CHECK(from.size() == to.size(), "both hold the model's buffers");
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

struct TorchProgram::Impl {
  Impl(const ModelSpec& spec, Samples train_samples, Samples test_samples, std::uint64_t seed)
      : model(spec),
        train(std::move(train_samples)),
        test(std::move(test_samples)),
        network(spec),
        parameters(network.ParameterSlots()),
        momentum(network.ParameterSlots()),
        buffers(network.BufferSlots()),
        scratch(network.BufferSlots()),
        info{.train_samples = train.count(),
             .test_samples = test.count(),
             .epochs = spec.train.epochs,
             .gradient_elements = parameters.floats().size(),
             .buffer_bytes = buffers.bytes().size(),
             .name = spec.name} {
    network.Initialize(seed, parameters, buffers);
    for (const at::Tensor& parameter : parameters.tensors()) parameter.requires_grad_(true);
  }

  ShardSums Evaluate(const ShardTask& task) {
    const c10::NoGradGuard no_grad;
    const Batch batch = Gather(test, task.samples, model.input);
    const at::Tensor scores =
        network.Forward(batch.images, parameters.tensors(), buffers.tensors(), /*training=*/false);
    return Sums(batch, scores, Loss(batch, scores));
  }

  Result<ShardSums> Train(const ShardTask& task, std::span<float> gradient) {
    const auto count = static_cast<std::int64_t>(task.samples.size());
    if (count < network.SamplesLeast()) {
      return Invalid(std::format(
          "shard {} of step {} has {} sample, too few for batch_norm: use fewer logical shards",
          task.shard, task.step, count));
    }
    const Batch batch = Gather(train, task.samples, model.input);
    const at::Tensor scores =
        network.Forward(batch.images, parameters.tensors(), scratch.tensors(), /*training=*/true);
    const at::Tensor loss = Loss(batch, scores);
    float* out = gradient.data();
    for (const at::Tensor& part : torch::autograd::grad({loss}, parameters.tensors())) {
      const at::Tensor dense = part.contiguous();
      out = std::copy_n(dense.const_data_ptr<float>(), dense.numel(), out);
    }
    CHECK(out == gradient.data() + gradient.size(), "one number a parameter");
    return Sums(batch, scores, loss);
  }

  static at::Tensor Loss(const Batch& batch, const at::Tensor& scores) {
    return at::cross_entropy_loss(scores, batch.labels, /*weight=*/{}, at::Reduction::Sum);
  }

  static ShardSums Sums(const Batch& batch, const at::Tensor& scores, const at::Tensor& loss) {
    const at::Tensor correct = at::argmax(scores.detach(), 1).eq(batch.labels).sum();
    return {.samples = static_cast<double>(batch.labels.numel()),
            .loss = loss.item<float>(),
            .correct = static_cast<double>(correct.item<std::int64_t>())};
  }

  const ModelSpec model;
  const Samples train;
  const Samples test;
  const Network network;
  // Committed state.
  TensorArena parameters;
  TensorArena momentum;
  TensorArena buffers;
  // What the running shard's forward makes of the buffers.
  TensorArena scratch;
  const ProgramInfo info;
};

std::string TorchVersion() { return "libtorch " TORCH_VERSION; }

TorchProgram::TorchProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchProgram::~TorchProgram() = default;

Result<std::unique_ptr<TorchProgram>> TorchProgram::Create(const ModelSpec& model, Samples train,
                                                           Samples test, std::uint64_t seed) {
  try {
    UseOneThreadDeterministically();
    auto impl = std::make_unique<Impl>(model, std::move(train), std::move(test), seed);
    return std::unique_ptr<TorchProgram>(new TorchProgram(std::move(impl)));
  } catch (const std::exception& error) {
    return Invalid(std::format("build model {}: {}", model.name, Sentence(error)));
  }
}

const ProgramInfo& TorchProgram::info() const { return impl_->info; }

Result<ShardSums> TorchProgram::ComputeShard(const ShardTask& task, std::span<float> gradient,
                                             std::span<std::byte> buffers) {
  const bool training = task.kind == TickKind::kTrain;
  CHECK(!training || gradient.size() == impl_->info.gradient_elements, "room for the gradient");
  at::init_num_threads();  // OpenMP keeps the number for each calling thread
  try {
    if (training) Copy(impl_->buffers.bytes(), impl_->scratch.bytes());
    ShardSums sums;
    if (task.samples.empty()) {
      std::ranges::fill(gradient, 0.0F);
    } else if (training) {
      ASSIGN_OR_RETURN(sums, impl_->Train(task, gradient));
    } else {
      sums = impl_->Evaluate(task);
    }
    if (training && !std::isfinite(sums.loss)) {
      return Invalid(std::format(
          "the loss of step {} is not finite: the training diverges, lower train.learningRate",
          task.step));
    }
    if (training && task.shard == 0) Copy(impl_->scratch.bytes(), buffers);
    return sums;
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInternal, std::format("compute shard {} of step {}: {}", task.shard,
                                                  task.step, Sentence(error)));
  }
}

Status TorchProgram::Commit(const CommitTask& task) {
  const TrainSpec& train = impl_->model.train;
  SgdStep({.learning_rate = static_cast<float>(train.learning_rate),
           .momentum = static_cast<float>(train.momentum),
           .weight_decay = static_cast<float>(train.weight_decay)},
          task.gradient, impl_->momentum.floats(), impl_->parameters.floats());
  Copy(task.buffers, impl_->buffers.bytes());
  return {};
}

StateDict TorchProgram::State() {
  StateDict state = impl_->parameters.Views("model.", "");
  std::ranges::move(impl_->buffers.Views("model.", ""), std::back_inserter(state));
  std::ranges::move(impl_->momentum.Views("optimizer.", ".momentum"), std::back_inserter(state));
  return state;
}

Status TorchProgram::LoadedState() { return {}; }  // the views are the tensors themselves

}  // namespace pliant::learner
