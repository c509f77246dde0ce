#include "trainer/learner/torch_program.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "base/format.h"
#include "trainer/learner/images.h"
#include "trainer/learner/network.h"
#include "trainer/learner/optimizer.h"
#include "trainer/learner/update.h"

namespace pliant::learner {
namespace {

// The number of threads decides how a kernel splits its sums, so the result depends on it.
void UseOneThreadDeterministically() {
  static const bool once = [] {
    at::set_num_threads(1);
    at::set_num_interop_threads(1);
    // OpenBLAS built on pthreads ignores the OpenMP call that torch makes.
    using SetThreads = void (*)(int);
    if (auto* set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))) {
      set(1);
    }
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
    // The call above also fills new memory, which only helps to find reads of uninitialised memory.
    // No kernel used here has such reads, and every temporary would be written twice.
    at::globalContext().setDeterministicFillUninitializedMemory(false);
    return true;
  }();
  CHECK(once, "runs before the first tensor");
}

struct Batch {
  at::Tensor images;
  at::Tensor labels;
};

// The message without the backtrace that torch's errors have.
std::string Sentence(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
}

void Copy(std::span<const std::byte> from, std::span<std::byte> to) {
  CHECK(from.size() == to.size(), "both hold the model's buffers");
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

// The number of elements of each.
std::vector<std::size_t> SizesOf(std::span<const at::Tensor> tensors) {
  std::vector<std::size_t> sizes;
  for (const at::Tensor& tensor : tensors)
    sizes.push_back(static_cast<std::size_t>(tensor.numel()));
  return sizes;
}

}  // namespace

struct TorchProgram::Impl {
  Impl(const ModelSpec& spec, Samples train_samples, Samples test_samples, const Options& options)
      : model(spec),
        steps_per_epoch(options.steps_per_epoch),
        train(std::move(train_samples)),
        test(std::move(test_samples)),
        pixel_table(MakePixelTable(spec.data, train.shape[0])),
        network(spec),
        parameters(network.ParameterSlots()),
        buffers(network.BufferSlots()),
        scratch(network.BufferSlots()),
        info{.train_samples = train.count(),
             .test_samples = test.count(),
             .epochs = spec.train.epochs,
             .gradient_elements = parameters.floats().size(),
             .gradient_tensors = SizesOf(parameters.tensors()),
             .buffer_bytes = buffers.bytes().size(),
             .name = spec.name},
        cells(CellsOf(info)) {
    network.Initialize(options.seed, parameters, buffers);
    std::size_t offset = 0;
    for (const at::Tensor& parameter : parameters.tensors()) {
      parameter.requires_grad_(true);
      torch::autograd::impl::set_post_acc_grad_hooks(parameter,
                                                     std::make_unique<GradientHook>(*this, offset));
      offset += static_cast<std::size_t>(parameter.numel());
    }
    for ([[maybe_unused]] const std::string_view name : StateNames(spec.train.optimizer)) {
      optimizer.emplace_back(network.ParameterSlots());
      optimizer_floats.push_back(optimizer.back().floats());
    }
  }

  // Without `augment_seed` the images are not augmented.
  Batch Gather(const Samples& from, const std::vector<std::uint64_t>& indices,
               std::optional<std::uint64_t> augment_seed) const {
    const auto count = static_cast<std::int64_t>(indices.size());
    Shape batch_shape = {count};
    batch_shape.insert(batch_shape.end(), model.input.begin(), model.input.end());
    Batch batch = {at::empty(batch_shape, at::kFloat), at::empty({count}, at::kLong)};
    const auto size = static_cast<std::size_t>(Elements(model.input));
    const std::span<const std::uint8_t> pixels = from.pixels;
    float* image = batch.images.data_ptr<float>();
    std::int64_t* label = batch.labels.data_ptr<std::int64_t>();
    for (const std::uint64_t index : indices) {
      CHECK(index < from.count(), "the sampler knows how many samples there are");
      const Placement placement =
          augment_seed ? DrawPlacement(model.data.augment, *augment_seed, index) : Placement{};
      WriteImage(pixels.subspan(index * size, size), from.shape, pixel_table, placement,
                 {image, size});
      image += size;
      *label++ = from.labels[index];
    }
    return batch;
  }

  Batch TimedGather(const Samples& from, const std::vector<std::uint64_t>& indices,
                    std::optional<std::uint64_t> augment_seed) {
    const TimePoint began = MonotonicNow();
    Batch batch = Gather(from, indices, augment_seed);
    data_wait += MonotonicNow() - began;
    return batch;
  }

  ShardSums Evaluate(const ShardTask& task) {
    const c10::NoGradGuard no_grad;
    const Batch batch = TimedGather(test, task.samples, std::nullopt);
    const at::Tensor scores = network.Forward(
        batch.images, {.parameters = parameters.tensors(), .buffers = buffers.tensors()});
    return Sums(batch, scores, Loss(batch, scores, /*smoothing=*/0));
  }

  // Called by the backward pass for each parameter, on the thread that runs it.
  class GradientHook final : public torch::autograd::PostAccumulateGradHook {
   public:
    GradientHook(Impl& impl, std::size_t offset) : impl_(impl), offset_(offset) {}
    void operator()(const at::Tensor& parameter) override {
      impl_.TakeGradient(parameter, offset_);
    }

   private:
    Impl& impl_;
    const std::size_t offset_;  // in the flat gradient
  };

  // Copies the gradient while the kernel's output is still in the cache.
  void TakeGradient(const at::Tensor& parameter, std::size_t offset) {
    const at::Tensor dense = parameter.grad().contiguous();
    const auto size = static_cast<std::size_t>(dense.numel());
    std::copy_n(dense.const_data_ptr<float>(), size, gradient_out.data() + offset);
    parameter.mutable_grad().reset();
    gradient_missing -= size;
    if (sink != nullptr) sink->OnReady({.begin = offset, .size = size});
  }

  Result<ShardSums> Train(const ShardTask& task, std::span<float> gradient,
                          GradientSink* gradient_sink) {
    const auto count = static_cast<std::int64_t>(task.samples.size());
    if (count < network.MinSamples()) {
      return Invalid(Format(
          "shard {} of step {} has {} sample, too few for batch_norm: use fewer logical shards",
          task.shard, task.step, count));
    }
    const Batch batch = TimedGather(train, task.samples, task.seed);
    const at::Tensor scores = network.Forward(batch.images, {.parameters = parameters.tensors(),
                                                             .buffers = scratch.tensors(),
                                                             .training = true,
                                                             .seed = task.seed});
    const at::Tensor loss = Loss(batch, scores, model.train.label_smoothing);
    gradient_out = gradient;
    gradient_missing = gradient.size();
    sink = gradient_sink;
    torch::autograd::backward({loss}, {});
    CHECK(gradient_missing == 0, "every parameter has a gradient, and one");
    return Sums(batch, scores, loss);
  }

  static at::Tensor Loss(const Batch& batch, const at::Tensor& scores, double smoothing) {
    constexpr std::int64_t kIgnoreNone = -100;  // torch's default: no label has this value
    return at::cross_entropy_loss(scores, batch.labels, /*weight=*/{}, at::Reduction::Sum,
                                  kIgnoreNone, smoothing);
  }

  static ShardSums Sums(const Batch& batch, const at::Tensor& scores, const at::Tensor& loss) {
    const at::Tensor correct = at::argmax(scores.detach(), 1).eq(batch.labels).sum();
    return {.samples = static_cast<double>(batch.labels.numel()),
            .loss = loss.item<float>(),
            .correct = static_cast<double>(correct.item<std::int64_t>())};
  }

  const ModelSpec model;
  const std::uint64_t steps_per_epoch;
  const Samples train;
  const Samples test;
  const PixelTable pixel_table;
  const Network network;
  // Committed state.
  TensorArena parameters;
  TensorArena buffers;
  std::vector<TensorArena> optimizer;  // one for each array of its state
  std::vector<std::span<float>> optimizer_floats;
  UpdateState::Counters counters;
  // The buffers as changed by the forward of the current shard.
  TensorArena scratch;
  const ProgramInfo info;
  const GradientCells cells;
  // The destination of the current shard's backward pass.
  std::span<float> gradient_out;
  std::size_t gradient_missing = 0;
  GradientSink* sink = nullptr;
  Duration data_wait{};  // total time spent on reading samples
};

std::string TorchVersion() { return "libtorch " TORCH_VERSION; }

TorchProgram::TorchProgram(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchProgram::~TorchProgram() = default;

Result<std::unique_ptr<TorchProgram>> TorchProgram::Create(const ModelSpec& model, Samples train,
                                                           Samples test, const Options& options) {
  RETURN_IF_ERROR(CheckInput(model.input, train.shape));
  RETURN_IF_ERROR(CheckInput(model.input, test.shape));
  try {
    UseOneThreadDeterministically();
    auto impl = std::make_unique<Impl>(model, std::move(train), std::move(test), options);
    return std::unique_ptr<TorchProgram>(new TorchProgram(std::move(impl)));
  } catch (const std::exception& error) {
    return Invalid(Format("build model {}: {}", model.name, Sentence(error)));
  }
}

const ProgramInfo& TorchProgram::info() const { return impl_->info; }

Duration TorchProgram::data_wait() const { return impl_->data_wait; }

Result<ShardSums> TorchProgram::ComputeShard(const ShardTask& task, std::span<float> gradient,
                                             std::span<std::byte> buffers, GradientSink* sink) {
  const bool training = task.kind == TickKind::kTrain;
  CHECK(!training || gradient.size() == impl_->info.gradient_elements, "room for the gradient");
  at::init_num_threads();  // OpenMP keeps the number for each calling thread
  try {
    if (training) Copy(impl_->buffers.bytes(), impl_->scratch.bytes());
    ShardSums sums;
    if (task.samples.empty()) {
      std::ranges::fill(gradient, 0.0F);
    } else if (training) {
      ASSIGN_OR_RETURN(sums, impl_->Train(task, gradient, sink));
    } else {
      sums = impl_->Evaluate(task);
    }
    if (training && task.shard == 0) Copy(impl_->scratch.bytes(), buffers);
    return sums;
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kInternal,
                Format("compute shard {} of step {}: {}", task.shard, task.step, Sentence(error)));
  }
}

Status TorchProgram::Commit(const CommitTask& task) {
  ASSIGN_OR_RETURN(const bool taken, Update(impl_->model.train, impl_->steps_per_epoch, task,
                                            {.parameters = impl_->parameters.floats(),
                                             .optimizer = impl_->optimizer_floats,
                                             .cells = &impl_->cells,
                                             .counters = &impl_->counters}));
  if (taken) Copy(task.buffers, impl_->buffers.bytes());
  return {};
}

StateDict TorchProgram::State() {
  StateDict state = impl_->parameters.Views("model.", "");
  std::ranges::move(impl_->buffers.Views("model.", ""), std::back_inserter(state));
  const std::span<const std::string_view> names = StateNames(impl_->model.train.optimizer);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::ranges::move(impl_->optimizer[i].Views("optimizer.", Format(".{}", names[i])),
                      std::back_inserter(state));
  }
  const auto counter = [&](std::string name, std::int64_t& value) {
    state.push_back({.name = std::move(name),
                     .dtype = DType::kInt64,
                     .shape = {},
                     .bytes = std::as_writable_bytes(std::span(&value, 1))});
  };
  counter("optimizer.updates", impl_->counters.updates);
  counter("optimizer.non_finite_in_a_row", impl_->counters.non_finite_in_a_row);
  return state;
}

Status TorchProgram::LoadedState() { return {}; }  // the views are the tensors themselves

}  // namespace pliant::learner
