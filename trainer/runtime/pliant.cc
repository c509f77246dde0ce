// The C interface: checks arguments, turns errors into codes, and nothing else.

#include "trainer/runtime/pliant.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/exceptions.h"
#include "base/format.h"
#include "trainer/collective/float_environment.h"
#include "trainer/collective/float_loops.h"
#include "trainer/runtime/learner_session.h"

struct pliant_learner {
  std::unique_ptr<pliant::LearnerSession> session;
  // What was handed out as pointers.
  std::string folder;
  std::string metrics_line;
  pliant::ShardTask forecast;
};

namespace {

using pliant::BoundProgram;
using pliant::DType;
using pliant::Error;
using pliant::ErrorCode;
using pliant::Fail;
using pliant::Format;
using pliant::Invalid;
using pliant::LearnerSession;
using pliant::Result;
using pliant::Status;
using pliant::TensorRole;
using pliant::Work;

constexpr double kForeverSeconds = 1e9;
constexpr std::int32_t kMostDimensions = 64;

thread_local std::string t_last_error;

pliant_status CodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
      return PLIANT_INVALID;
    case ErrorCode::kConflict:
      return PLIANT_ORDER;
    case ErrorCode::kInternal:
      return PLIANT_INTERNAL;
    default:
      return PLIANT_FAILED;
  }
}

// Keeps the sentence of an error without ever throwing.
pliant_status Keep(pliant_status code, std::string_view sentence) noexcept {
  try {
    t_last_error = sentence;
  } catch (...) {
    t_last_error.clear();
  }
  return code;
}

// Runs the body of a function of the interface: nothing that is thrown leaves it.
template <typename Body>
pliant_status Guarded(const Body& body) noexcept {
  t_last_error.clear();
  const Result<pliant_status> result = pliant::CatchAll(body);
  if (result) return *result;
  return Keep(CodeOf(result.error().code), result.error().message);
}

// The learner that is open, of which a process has one, and the calls that are under way on it:
// some functions are for any thread, and such a call may come when another thread closes it.
class OpenLearner {
 public:
  void Set(const pliant_learner* learner) {
    const std::lock_guard lock(mutex_);
    learner_ = learner;
  }
  // kConflict: it is closed, and `learner` points to nothing.
  Status BeginCall(const pliant_learner* learner) {
    const std::lock_guard lock(mutex_);
    if (learner != learner_) return Fail(ErrorCode::kConflict, "the learner is closed");
    ++calls_;
    return {};
  }
  void EndCall() {
    const std::lock_guard lock(mutex_);
    if (--calls_ == 0) idle_.notify_all();
  }
  // No call begins from now on. False: it is closed already, or NULL.
  bool Close(const pliant_learner* learner) {
    const std::lock_guard lock(mutex_);
    if (learner == nullptr || learner != learner_) return false;
    learner_ = nullptr;
    return true;
  }
  void AwaitCalls() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return calls_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable idle_;
  // Guarded by mutex_.
  const pliant_learner* learner_ = nullptr;
  int calls_ = 0;
};

OpenLearner g_open;

// The same, of a function of a learner: it is there until the call ends.
template <typename Body>
pliant_status Guarded(const pliant_learner* learner, const Body& body) noexcept {
  return Guarded([&]() -> Result<pliant_status> {
    if (learner == nullptr) return Invalid("learner is NULL");
    RETURN_IF_ERROR(g_open.BeginCall(learner));
    struct Call {
      ~Call() { g_open.EndCall(); }
    } call;
    return body(*learner->session);
  });
}

Result<pliant_status> OkOr(Status status) {
  if (!status) return std::unexpected(std::move(status).error());
  return PLIANT_OK;
}

// Takes over what the caller knows of a struct; the rest is zero.
template <typename T>
Result<T> Read(const T* from, const char* name) {
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
Result<pliant_status> Write(T from, T* to, const char* name) {
  ASSIGN_OR_RETURN(const T known, Read(to, name));
  from.struct_size = known.struct_size;
  std::memcpy(to, &from, std::min(known.struct_size, sizeof from));
  return PLIANT_OK;
}

std::string TextOr(const char* text, const char* otherwise) {
  return text != nullptr ? text : otherwise;
}

Result<TensorRole> RoleOf(std::int32_t role) {
  switch (role) {
    case PLIANT_PARAMETER:
      return TensorRole::kParameter;
    case PLIANT_BUFFER:
      return TensorRole::kBuffer;
    case PLIANT_STATE:
      return TensorRole::kState;
    default:
      return Invalid(Format("tensor->role is {}", role));
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
    default:
      return Invalid(Format("dtype is {}", dtype));
  }
}

Status CheckDevice(std::int32_t device) {
  if (device == PLIANT_CPU || device == PLIANT_CUDA) return {};
  return Invalid(Format("device is {}", device));
}

// Its bytes are where the caller said, on whatever device that is.
Result<pliant::BoundTensor> TensorOf(const pliant_tensor& tensor) {
  if (tensor.name == nullptr || *tensor.name == '\0') return Invalid("tensor->name is missing");
  const std::string name = tensor.name;
  const auto wrong = [&](std::string_view what) {
    return Invalid(Format("tensor {}: {}", name, what));
  };
  RETURN_IF_ERROR(CheckDevice(tensor.device));
  ASSIGN_OR_RETURN(const TensorRole role, RoleOf(tensor.role));
  if (role == TensorRole::kParameter && !name.starts_with(pliant::kModelPrefix)) {
    return wrong(
        "a parameter's name begins with \"model.\": otherwise it would be in no final "
        "model, and learners would not compare it");
  }
  ASSIGN_OR_RETURN(const DType dtype, DTypeOf(tensor.dtype));
  if (tensor.dimensions < 0 || tensor.dimensions > kMostDimensions) return wrong("dimensions");
  if (tensor.dimensions > 0 && tensor.shape == nullptr) return wrong("shape is NULL");
  pliant::BoundTensor bound = {.view = {.name = name, .dtype = dtype, .shape = {}, .bytes = {}},
                               .role = role};
  std::size_t bytes = SizeOf(dtype);
  for (std::int32_t i = 0; i < tensor.dimensions; ++i) {
    const std::int64_t extent = tensor.shape[i];
    if (extent < 0) return wrong("a negative extent");
    if (extent > 0 &&
        bytes > std::numeric_limits<std::int64_t>::max() / static_cast<std::size_t>(extent)) {
      return wrong("too large");
    }
    bytes *= static_cast<std::size_t>(extent);
    bound.view.shape.push_back(extent);
  }
  if (bytes > 0 && tensor.data == nullptr) return wrong("data is NULL");
  bound.view.bytes = {static_cast<std::byte*>(tensor.data), bytes};
  return bound;
}

// The program, if the work at hand is one of these kinds.
Result<BoundProgram*> ProgramAt(LearnerSession& session, std::initializer_list<Work::Kind> kinds) {
  BoundProgram* const program = session.program();
  if (program == nullptr || !program->work() ||
      std::ranges::find(kinds, program->work()->kind) == kinds.end()) {
    return Fail(ErrorCode::kConflict, "this does not answer the work at hand");
  }
  return program;
}

// A training shard's program, and its parameters [first, first + count) exist.
Result<BoundProgram*> ProgramWith(LearnerSession& session, std::int32_t first, std::int32_t count) {
  ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt(session, {Work::Kind::kTrain}));
  const auto most = static_cast<std::int64_t>(program->parameters());
  if (first < 0 || count < 0 || std::int64_t{first} + count > most) {
    return Invalid(Format("parameters {} to {} of {}", first, std::int64_t{first} + count, most));
  }
  return program;
}

pliant_work Describe(const pliant::ShardTask& task) {
  pliant_work work{};
  work.kind = task.kind == pliant::TickKind::kTrain ? PLIANT_TRAIN : PLIANT_EVALUATE;
  work.shard = task.shard;
  work.epoch = task.epoch;
  work.step = task.step;
  work.samples = task.samples.data();
  work.sample_count = task.samples.size();
  work.seed = task.seed;
  return work;
}

pliant_work Describe(const Work& from) {
  switch (from.kind) {
    case Work::Kind::kTrain:
    case Work::Kind::kEvaluate: {
      pliant_work work = Describe(from.task);
      work.gradient = from.gradient.data();
      work.gradient_elements = from.gradient.size();
      work.travels_early = from.sink != nullptr ? 1 : 0;
      return work;
    }
    case Work::Kind::kCommit: {
      pliant_work work{};
      work.kind = PLIANT_COMMIT;
      work.epoch = from.commit.epoch;
      work.step = from.commit.step;
      work.reduced = from.commit.gradient.data();
      work.gradient_elements = from.commit.gradient.size();
      work.samples_sum = from.commit.sums.samples;
      work.loss_sum = from.commit.sums.loss;
      work.correct_sum = from.commit.sums.correct;
      return work;
    }
    case Work::Kind::kEvaluated: {
      pliant_work work{};
      work.kind = PLIANT_EVALUATED;
      work.epoch = from.evaluation.epoch;
      work.step = from.evaluation.step;
      work.samples_sum = from.evaluation.sums.samples;
      work.loss_sum = from.evaluation.sums.loss;
      work.correct_sum = from.evaluation.sums.correct;
      return work;
    }
    case Work::Kind::kLoaded: {
      pliant_work work{};
      work.kind = PLIANT_LOADED;
      return work;
    }
  }
  return {};
}

std::int32_t ReasonOf(const LearnerSession::Ending& ending) {
  if (ending.interrupted) return PLIANT_INTERRUPTED;
  switch (ending.reason) {
    case pliant::LeftReason::kCompleted:
      return PLIANT_COMPLETED;
    case pliant::LeftReason::kDrained:
      return PLIANT_DRAINED;
    case pliant::LeftReason::kFailed:
      return PLIANT_LEARNER_FAILED;
  }
  return PLIANT_LEARNER_FAILED;
}

// A gradient of a type that is taken, multiplied on its way.
void PutScaled(const void* data, std::int32_t dtype, double scale, std::span<float> to) {
  if (dtype == PLIANT_FLOAT32) {
    const auto* const from = static_cast<const float*>(data);
    return pliant::MultiplyInto(to.data(), from, static_cast<float>(scale), to.size());
  }
  const auto* from = static_cast<const double*>(data);
  for (float& value : to) value = static_cast<float>(*from++ * scale);
}

// The same, from wherever it is.
Status PutScaledFrom(std::int32_t device, LearnerSession& session, const void* data,
                     std::int32_t dtype, double scale, std::span<float> to) {
  if (device == PLIANT_CUDA) {
    const std::size_t size = dtype == PLIANT_FLOAT32 ? sizeof(float) : sizeof(double);
    ASSIGN_OR_RETURN(const std::span<const std::byte> copy,
                     session.ReadDevice(data, to.size() * size));
    data = copy.data();
  }
  PutScaled(data, dtype, scale, to);
  return {};
}

// out = left + values · scale, by the operations and so to the bits of doing one after the other:
// the product is made as PutScaled does, and added as the sums of a learner's shards are.
void AddScaled(std::span<const float> left, const float* values, float scale,
               std::span<float> out) {
  std::array<float, 2048> product;  // stays in the cache
  for (std::size_t begin = 0; begin < out.size(); begin += product.size()) {
    const std::size_t size = std::min(product.size(), out.size() - begin);
    pliant::MultiplyInto(product.data(), values + begin, scale, size);
    const pliant::FloatEnvironment environment;
    pliant::AddInto(out.data() + begin, left.data() + begin, product.data(), size);
  }
}

// All of a shard's gradients, on the way to where they are summed up with another's: a pass over
// memory less. False: that cannot be.
bool AddAllScaled(BoundProgram& program, const void* const* data, std::int32_t dtype,
                  std::int32_t device, double scale) {
  const std::size_t count = program.parameters();
  if (dtype != PLIANT_FLOAT32 || device != PLIANT_CPU || !program.can_add()) return false;
  if (std::find(data, data + count, nullptr) != data + count) return false;
  for (std::size_t i = 0; i < count; ++i) {
    AddScaled(program.LeftOf(i), static_cast<const float*>(data[i]), static_cast<float>(scale),
              program.GradientOf(i));
  }
  program.Added();
  return true;
}

Status CheckGradientType(std::int32_t dtype) {
  if (dtype == PLIANT_FLOAT32 || dtype == PLIANT_FLOAT64) return {};
  return Invalid(Format("a gradient's dtype is {}: float32 and float64 are taken", dtype));
}

}  // namespace

extern "C" {

const char* pliant_last_error(void) { return t_last_error.c_str(); }
int32_t pliant_abi_version(void) { return PLIANT_ABI_VERSION; }
const char* pliant_version(void) { return PLIANT_VERSION; }

pliant_status pliant_open(const pliant_options* options, pliant_learner** learner) {
  return Guarded([&]() -> Result<pliant_status> {
    if (learner == nullptr) return Invalid("learner is NULL");
    *learner = nullptr;
    pliant_options given{};
    if (options != nullptr) {
      ASSIGN_OR_RETURN(given, Read(options, "options"));
    }
    LearnerSession::Options opening = {.name = TextOr(given.name, "program"),
                                       .framework = TextOr(given.framework, "unknown"),
                                       .gpu_problem = TextOr(given.gpu_problem, ""),
                                       .checkpoint_dir = {},
                                       .take_signals = given.leave_signals == 0,
                                       .keep_freed_memory = given.keep_freed_memory != 0};
    if (given.checkpoint_dir != nullptr) opening.checkpoint_dir = given.checkpoint_dir;
    auto made = std::make_unique<pliant_learner>();
    ASSIGN_OR_RETURN(made->session, LearnerSession::Open(std::move(opening)));
    made->folder = made->session->folder().string();
    g_open.Set(made.get());
    *learner = made.release();
    return PLIANT_OK;
  });
}

void pliant_close(pliant_learner* learner) {
  Guarded([&]() -> Result<pliant_status> {
    if (!g_open.Close(learner)) return PLIANT_OK;
    pliant::CatchAll([&] { learner->session->GiveUp(); });  // so that pliant_next waits no longer
    g_open.AwaitCalls();
    delete learner;
    return PLIANT_OK;
  });
}

pliant_status pliant_get_job(const pliant_learner* learner, pliant_job* job) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    const pliant::LearnerEnvironment& environment = session.environment();
    pliant_job known{};
    known.alone = environment.coordinator ? 0 : 1;
    known.bitwise = environment.reproducibility == pliant::Reproducibility::kBitwise ? 1 : 0;
    known.max_learners = pliant::MaxLearnersOf(environment);
    known.logical_shards = environment.logical_shards.value_or(0);
    known.global_batch_size = environment.global_batch_size.value_or(0);
    known.seed = environment.seed.value_or(0);
    known.has_seed = environment.seed ? 1 : 0;
    known.job = environment.job.c_str();
    known.learner = environment.learner.c_str();
    known.checkpoint_dir = learner->folder.c_str();
    return Write(known, job, "job");
  });
}

pliant_status pliant_describe(pliant_learner* learner, const pliant_training* training) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(const pliant_training given, Read(training, "training"));
    LearnerSession::Training described = {
        .train_samples = given.train_samples,
        .test_samples = given.test_samples,
        .epochs = given.epochs,
        .global_batch_size = {},
        .logical_shards = {},
        .seed = {},
        .drop_last = given.drop_last != 0,
        .order = given.in_order != 0 ? pliant::DataOrder::kAsItLies : pliant::DataOrder::kShuffled,
        .hears_evaluations = given.hears_evaluations != 0};
    if (given.global_batch_size != 0) described.global_batch_size = given.global_batch_size;
    if (given.logical_shards != 0) described.logical_shards = given.logical_shards;
    if (given.has_seed != 0) described.seed = given.seed;
    return OkOr(session.Describe(described));
  });
}

pliant_status pliant_get_plan(const pliant_learner* learner, pliant_plan* plan) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    const pliant::Schedule* const schedule = session.schedule();
    if (schedule == nullptr) return Fail(ErrorCode::kConflict, "the training was not described");
    pliant_plan known{};
    known.global_batch_size = schedule->spec().global_batch_size;
    known.steps_per_epoch = schedule->steps_per_epoch();
    known.total_steps = schedule->total_steps();
    known.seed = schedule->spec().seed;
    known.logical_shards = schedule->spec().logical_shards;
    return Write(known, plan, "plan");
  });
}

pliant_status pliant_register(pliant_learner* learner, const pliant_tensor* tensor,
                              int32_t* index) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(const pliant_tensor given, Read(tensor, "tensor"));
    ASSIGN_OR_RETURN(pliant::BoundTensor bound, TensorOf(given));
    const TensorRole role = bound.role;
    if (given.device == PLIANT_CUDA) {
      const std::size_t bytes = std::exchange(bound.view.bytes, {}).size();
      RETURN_IF_ERROR(session.RegisterOnDevice(std::move(bound), given.data, bytes));
    } else {
      RETURN_IF_ERROR(session.Register(std::move(bound)));
    }
    if (index != nullptr) *index = session.registered(role) - 1;
    return PLIANT_OK;
  });
}

pliant_status pliant_start(pliant_learner* learner) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    return OkOr(session.Start());
  });
}

pliant_status pliant_next(pliant_learner* learner, double seconds, pliant_work* work) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    if (std::isnan(seconds)) return Invalid("seconds is not a number");
    if (session.program() == nullptr) {
      return Fail(ErrorCode::kConflict, "the learner was not started");
    }
    if (session.program()->work()) {
      return Fail(ErrorCode::kConflict, "the work before was not answered");
    }
    RETURN_IF_ERROR(Read(work, "work").transform([](const pliant_work&) {}));
    std::optional<pliant::Duration> most;
    if (seconds >= 0 && seconds < kForeverSeconds) {
      most = std::chrono::duration_cast<pliant::Duration>(std::chrono::duration<double>(seconds));
    }
    ASSIGN_OR_RETURN(const bool taken, session.Next(most));
    if (taken) return Write(Describe(*session.program()->work()), work, "work");
    if (session.ending() == nullptr) return PLIANT_NOTHING;
    pliant_work end{};
    end.kind = PLIANT_END;
    return Write(end, work, "work");
  });
}

pliant_status pliant_gradients_ready(pliant_learner* learner, int32_t first_parameter,
                                     int32_t count) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramWith(session, first_parameter, count));
    const auto first = static_cast<std::size_t>(first_parameter);
    RETURN_IF_ERROR(program->CheckNotReady(first, static_cast<std::size_t>(count)));
    program->GradientsReady(first, static_cast<std::size_t>(count));
    return PLIANT_OK;
  });
}

pliant_status pliant_put_gradient(pliant_learner* learner, int32_t parameter, const void* data,
                                  int32_t dtype, int32_t device, double scale) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramWith(session, parameter, 1));
    RETURN_IF_ERROR(CheckDevice(device));
    const auto index = static_cast<std::size_t>(parameter);
    RETURN_IF_ERROR(CheckGradientType(dtype));
    RETURN_IF_ERROR(program->CheckNotReady(index, 1));
    const std::span<float> to = program->GradientOf(index);
    if (data == nullptr && !to.empty()) return Invalid("data is NULL");
    RETURN_IF_ERROR(PutScaledFrom(device, session, data, dtype, scale, to));
    program->GradientsReady(index, 1);
    return PLIANT_OK;
  });
}

pliant_status pliant_put_gradients(pliant_learner* learner, const void* const* data, int32_t dtype,
                                   int32_t device, double scale) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramWith(session, 0, 0));
    RETURN_IF_ERROR(CheckDevice(device));
    RETURN_IF_ERROR(CheckGradientType(dtype));
    if (data == nullptr) return Invalid("data is NULL");
    const std::size_t count = program->parameters();
    for (std::size_t i = 0; i < count; ++i) {
      if (data[i] != nullptr) RETURN_IF_ERROR(program->CheckNotReady(i, 1));
    }
    if (!AddAllScaled(*program, data, dtype, device, scale)) {
      for (std::size_t i = 0; i < count; ++i) {
        if (data[i] == nullptr) continue;
        RETURN_IF_ERROR(
            PutScaledFrom(device, session, data[i], dtype, scale, program->GradientOf(i)));
      }
    }
    // All or none, and neighbours together.
    for (std::size_t first = 0, i = 0; i <= count; ++i) {
      if (i < count && data[i] != nullptr) continue;
      program->GradientsReady(first, i - first);
      first = i + 1;
    }
    return PLIANT_OK;
  });
}

pliant_status pliant_data_waited(pliant_learner* learner, double seconds) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program,
                     ProgramAt(session, {Work::Kind::kTrain, Work::Kind::kEvaluate}));
    if (!(seconds >= 0 && seconds < kForeverSeconds)) {
      return Invalid("the time waited for samples must be seconds, and not less than none");
    }
    program->DataWaited(
        std::chrono::duration_cast<pliant::Duration>(std::chrono::duration<double>(seconds)));
    return PLIANT_OK;
  });
}

pliant_status pliant_shard_done(pliant_learner* learner, double samples, double loss,
                                double correct) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program,
                     ProgramAt(session, {Work::Kind::kTrain, Work::Kind::kEvaluate}));
    return OkOr(program->ShardDone({.samples = samples, .loss = loss, .correct = correct}));
  });
}

pliant_status pliant_committed(pliant_learner* learner, int32_t taken) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt(session, {Work::Kind::kCommit}));
    return OkOr(program->Committed(taken != 0));
  });
}

pliant_status pliant_evaluated(pliant_learner* learner) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt(session, {Work::Kind::kEvaluated}));
    return OkOr(program->Evaluated());
  });
}

pliant_status pliant_stop(pliant_learner* learner) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(
        BoundProgram* const program,
        ProgramAt(session, {Work::Kind::kCommit, Work::Kind::kEvaluated, Work::Kind::kLoaded}));
    program->Stop();
    return PLIANT_OK;
  });
}

pliant_status pliant_loaded(pliant_learner* learner) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt(session, {Work::Kind::kLoaded}));
    return OkOr(program->Loaded());
  });
}

pliant_status pliant_fail(pliant_learner* learner, int32_t wrong_input, const char* message) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    session.Fail({wrong_input != 0 ? ErrorCode::kInvalid : ErrorCode::kUnavailable,
                  TextOr(message, "the program failed")});
    return PLIANT_OK;
  });
}

pliant_status pliant_leave(pliant_learner* learner) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    session.Leave();
    return PLIANT_OK;
  });
}

pliant_status pliant_request_learners(pliant_learner* learner, int32_t learners) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    if (learners < 0) return Invalid(Format("learners is {}", learners));
    session.AskForLearners(learners);
    return PLIANT_OK;
  });
}

pliant_status pliant_keep_output(pliant_learner* learner, const char* text, size_t bytes) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    if (text == nullptr && bytes > 0) return Invalid("text is NULL");
    session.KeepOutput({text, bytes});
    return PLIANT_OK;
  });
}

pliant_status pliant_forecast(pliant_learner* learner, uint64_t ahead, pliant_work* work) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    if (session.program() == nullptr) {
      return Fail(ErrorCode::kConflict, "the learner was not started");
    }
    if (!session.Forecast(ahead, learner->forecast)) return PLIANT_NOTHING;
    return Write(Describe(learner->forecast), work, "work");
  });
}

pliant_status pliant_next_metrics(pliant_learner* learner, const char** line) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    if (line == nullptr) return Invalid("line is NULL");
    auto next = session.NextMetricsLine();
    if (!next) return PLIANT_NOTHING;
    learner->metrics_line = *std::move(next);
    *line = learner->metrics_line.c_str();
    return PLIANT_OK;
  });
}

pliant_status pliant_get_end(const pliant_learner* learner, pliant_end* end) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    const LearnerSession::Ending* const ending = session.ending();
    if (ending == nullptr) return Fail(ErrorCode::kConflict, "the learner has not ended");
    pliant_end known{};
    known.reason = ReasonOf(*ending);
    known.exit_code = ending->exit_code;
    known.step = ending->step;
    known.message = ending->message.c_str();
    known.parameters_sha256 = ending->parameters_sha256.c_str();
    return Write(known, end, "end");
  });
}

}  // extern "C"
