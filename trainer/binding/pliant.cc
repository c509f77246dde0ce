// The C interface: only checks arguments and converts errors to codes.

#include "trainer/binding/pliant.h"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/exceptions.h"
#include "base/format.h"
#include "trainer/binding/abi_structs.h"
#include "trainer/binding/gradient_intake.h"
#include "trainer/binding/learner_session.h"

struct pliant_learner {
  std::unique_ptr<pliant::LearnerSession> session;
  // Pointers to these were handed out.
  std::string folder;
  std::string metrics_line;
  std::optional<pliant::ShardTask> forecast;
  pliant::ShownSums sums;
};

namespace {

using pliant::BoundProgram;
using pliant::CommitTask;
using pliant::Error;
using pliant::ErrorCode;
using pliant::EvaluationTask;
using pliant::Fail;
using pliant::Format;
using pliant::GradientFormat;
using pliant::GradientFormatOf;
using pliant::Invalid;
using pliant::LearnerSession;
using pliant::LoadedWork;
using pliant::ReadStruct;
using pliant::Result;
using pliant::ShardWork;
using pliant::Status;
using pliant::Work;
using pliant::WriteStruct;

constexpr double kForeverSeconds = 1e9;

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

// Stores the message of an error; never throws.
pliant_status Keep(pliant_status code, std::string_view sentence) noexcept {
  try {
    t_last_error = sentence;
  } catch (...) {
    t_last_error.clear();
  }
  return code;
}

// Runs the body of an interface function. No exception leaves it.
template <typename Body>
pliant_status Guarded(const Body& body) noexcept {
  t_last_error.clear();
  const Result<pliant_status> result = pliant::CatchAll(body);
  if (result) return *result;
  return Keep(CodeOf(result.error().code), result.error().message);
}

// The open learner, one a process, and the calls that run on it: some functions are for any thread,
// so a call may come while another thread closes the learner.
class OpenLearner {
 public:
  void Set(const pliant_learner* learner) {
    const std::lock_guard lock(mutex_);
    learner_ = learner;
  }
  // kConflict: the learner is closed, and `learner` is dangling.
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
  // From now on no call begins. False: the learner is already closed, or NULL.
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

// The same for a function that takes a learner, which exists until the call ends.
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

Error NotAtHand() { return {ErrorCode::kConflict, "this call does not fit the current work"}; }

// The program, if the current work is of one of these types.
template <typename... Answered>
Result<BoundProgram*> ProgramAt(LearnerSession& session) {
  BoundProgram* const program = session.program();
  const Work* const work = program != nullptr ? program->work() : nullptr;
  if (work == nullptr || !(std::holds_alternative<Answered>(*work) || ...)) {
    return std::unexpected(NotAtHand());
  }
  return program;
}

// Tells this to the program, if the current work is of one of these types.
template <typename... Current, typename Told>
pliant_status Tell(pliant_learner* learner, Told told) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt<Current...>(session));
    return OkOr(std::invoke(told, *program));
  });
}

// The program, if the current work is a training shard and parameters [first, first + count) exist.
Result<BoundProgram*> ProgramWith(LearnerSession& session, std::int32_t first, std::int32_t count) {
  ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt<ShardWork>(session));
  if (std::get<ShardWork>(*program->work()).task->kind != pliant::TickKind::kTrain) {
    return std::unexpected(NotAtHand());
  }
  const auto most = static_cast<std::int64_t>(program->parameters());
  if (first < 0 || count < 0 || std::int64_t{first} + count > most) {
    return Invalid(Format("parameters [{}, {}) are out of range: the program registered {}", first,
                          std::int64_t{first} + count, most));
  }
  return program;
}

pliant::ReadDevice DeviceReaderOf(LearnerSession& session) {
  return [&session](std::span<const std::span<const std::byte>> device) {
    return session.ReadDevice(device);
  };
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
      ASSIGN_OR_RETURN(given, ReadStruct(options, "options"));
    }
    auto made = std::make_unique<pliant_learner>();
    ASSIGN_OR_RETURN(made->session, LearnerSession::Open(pliant::OptionsOf(given)));
    made->folder = made->session->folder().string();
    g_open.Set(made.get());
    *learner = made.release();
    return PLIANT_OK;
  });
}

void pliant_close(pliant_learner* learner) {
  Guarded([&]() -> Result<pliant_status> {
    if (!g_open.Close(learner)) return PLIANT_OK;
    pliant::CatchAll(
        [&] { learner->session->EndProgram(); });  // so that pliant_next waits no longer
    g_open.AwaitCalls();
    delete learner;
    return PLIANT_OK;
  });
}

pliant_status pliant_get_job(const pliant_learner* learner, pliant_job* job) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    return OkOr(WriteStruct(JobOf(session.environment(), learner->folder), job, "job"));
  });
}

pliant_status pliant_describe(pliant_learner* learner, const pliant_training* training) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(const pliant_training given, ReadStruct(training, "training"));
    return OkOr(session.Describe(pliant::TrainingOf(given)));
  });
}

pliant_status pliant_get_plan(const pliant_learner* learner, pliant_plan* plan) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    const pliant::Schedule* const schedule = session.schedule();
    if (schedule == nullptr)
      return Fail(ErrorCode::kConflict,
                  "the training was not described: call pliant_describe first");
    return OkOr(WriteStruct(PlanOf(*schedule), plan, "plan"));
  });
}

pliant_status pliant_register(pliant_learner* learner, const pliant_tensor* tensor,
                              int32_t* index) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(const pliant_tensor given, ReadStruct(tensor, "tensor"));
    ASSIGN_OR_RETURN(pliant::BoundTensor bound, pliant::TensorOf(given));
    const pliant::TensorRole role = bound.role;
    if (given.device == PLIANT_CUDA) {
      RETURN_IF_ERROR(session.RegisterOnDevice(std::move(bound)));
    } else {
      RETURN_IF_ERROR(session.Register(std::move(bound)));
    }
    if (index != nullptr) *index = session.registered(role) - 1;
    return PLIANT_OK;
  });
}

pliant_status pliant_use_stream(pliant_learner* learner, void* stream) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    return OkOr(session.UseStream(stream));
  });
}

pliant_status pliant_describe_final(pliant_learner* learner, const pliant_final* final) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(const pliant_final given, ReadStruct(final, "final"));
    ASSIGN_OR_RETURN(pliant::FinalLayout layout, pliant::FinalLayoutOf(given));
    return OkOr(session.DescribeFinal(std::move(layout)));
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
      return Fail(ErrorCode::kConflict, "the learner was not started: call pliant_start first");
    }
    if (session.program()->work()) {
      return Fail(ErrorCode::kConflict, "the previous work was not answered");
    }
    RETURN_IF_ERROR(ReadStruct(work, "work").transform([](const pliant_work&) {}));
    std::optional<pliant::Duration> most;
    if (seconds >= 0 && seconds < kForeverSeconds) {
      most = std::chrono::duration_cast<pliant::Duration>(std::chrono::duration<double>(seconds));
    }
    ASSIGN_OR_RETURN(const bool taken, session.Next(most));
    if (taken) {
      pliant_work given = WorkOf(*session.program()->work());
      if (session.program()->device_gradients() != nullptr) given.device = PLIANT_CUDA;
      learner->sums.Show(*session.program()->work(), given);
      return OkOr(WriteStruct(given, work, "work"));
    }
    if (session.ending() == nullptr) return PLIANT_NOTHING;
    pliant_work end{};
    end.kind = PLIANT_END;
    return OkOr(WriteStruct(end, work, "work"));
  });
}

pliant_status pliant_gradients_ready(pliant_learner* learner, int32_t first_parameter,
                                     int32_t count) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramWith(session, first_parameter, count));
    const auto first = static_cast<std::size_t>(first_parameter);
    RETURN_IF_ERROR(program->CheckNotReady(first, static_cast<std::size_t>(count)));
    return OkOr(program->GradientsReady(first, static_cast<std::size_t>(count)));
  });
}

pliant_status pliant_put_gradient(pliant_learner* learner, int32_t parameter, const void* data,
                                  int32_t dtype, int32_t device, double scale) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramWith(session, parameter, 1));
    ASSIGN_OR_RETURN(const GradientFormat format, GradientFormatOf(dtype, device, scale));
    return OkOr(PutGradient(*program, static_cast<std::size_t>(parameter), data, format,
                            DeviceReaderOf(session)));
  });
}

pliant_status pliant_put_gradients(pliant_learner* learner, const void* const* data, int32_t dtype,
                                   int32_t device, double scale) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramWith(session, 0, 0));
    ASSIGN_OR_RETURN(const GradientFormat format, GradientFormatOf(dtype, device, scale));
    if (data == nullptr) return Invalid("data is NULL");
    return OkOr(
        PutGradients(*program, {data, program->parameters()}, format, DeviceReaderOf(session)));
  });
}

pliant_status pliant_data_waited(pliant_learner* learner, double seconds) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt<ShardWork>(session));
    if (!(seconds >= 0 && seconds < kForeverSeconds)) {
      return Invalid("seconds, the time waited for samples, must be at least 0 and below 1e9");
    }
    program->DataWaited(
        std::chrono::duration_cast<pliant::Duration>(std::chrono::duration<double>(seconds)));
    return PLIANT_OK;
  });
}

pliant_status pliant_report_sums(pliant_learner* learner, const pliant_sums* sums) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    RETURN_IF_ERROR(ProgramAt<ShardWork>(session).transform([](BoundProgram*) {}));
    ASSIGN_OR_RETURN(const pliant_sums given, ReadStruct(sums, "sums"));
    ASSIGN_OR_RETURN(pliant::ReportedSums reported, pliant::SumsOf(given));
    return OkOr(session.ReportSums(std::move(reported)));
  });
}

pliant_status pliant_shard_done(pliant_learner* learner, double samples, double loss,
                                double correct) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt<ShardWork>(session));
    if (program->reported().device_sums() > 2) {
      return Fail(ErrorCode::kConflict,
                  "the values of the named sums are missing: report them, or answer with "
                  "pliant_shard_done_on");
    }
    return OkOr(program->ShardDone(program->reported().Take(samples, loss, correct)));
  });
}

pliant_status pliant_shard_done_on(pliant_learner* learner, double samples, const double* sums) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    RETURN_IF_ERROR(ProgramAt<ShardWork>(session).transform([](BoundProgram*) {}));
    if (sums == nullptr) return Invalid("sums is NULL");
    return OkOr(session.ShardDoneOn(samples, sums));
  });
}

pliant_status pliant_gradient_norm(pliant_learner* learner, const void* const* data, int32_t device,
                                   double* norm) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    ASSIGN_OR_RETURN(BoundProgram* const program, ProgramAt<CommitTask>(session));
    ASSIGN_OR_RETURN(const GradientFormat format, GradientFormatOf(PLIANT_FLOAT32, device, 1));
    if (data == nullptr) return Invalid("data is NULL");
    if (norm == nullptr) return Invalid("norm is NULL");
    ASSIGN_OR_RETURN(*norm, pliant::GradientNorm(*program, {data, program->parameters()}, format,
                                                 DeviceReaderOf(session)));
    return PLIANT_OK;
  });
}

pliant_status pliant_committed(pliant_learner* learner, int32_t taken) {
  return Tell<CommitTask>(learner,
                          [&](BoundProgram& program) { return program.Committed(taken != 0); });
}

pliant_status pliant_evaluated(pliant_learner* learner) {
  return Tell<EvaluationTask>(learner, &BoundProgram::Evaluated);
}

pliant_status pliant_stop(pliant_learner* learner) {
  return Tell<CommitTask, EvaluationTask, LoadedWork>(learner, &BoundProgram::Stop);
}

pliant_status pliant_save_checkpoint(pliant_learner* learner) {
  return Tell<CommitTask, EvaluationTask>(learner, &BoundProgram::SaveCheckpoint);
}

pliant_status pliant_export_best(pliant_learner* learner, const char* note) {
  return Tell<CommitTask, EvaluationTask>(
      learner, [&](BoundProgram& program) { return program.ExportBest(pliant::TextOr(note, "")); });
}

pliant_status pliant_loaded(pliant_learner* learner) {
  return Tell<LoadedWork>(learner, &BoundProgram::Loaded);
}

pliant_status pliant_fail(pliant_learner* learner, int32_t wrong_input, const char* message) {
  return Guarded(learner, [&](LearnerSession& session) -> Result<pliant_status> {
    session.Fail({wrong_input != 0 ? ErrorCode::kInvalid : ErrorCode::kUnavailable,
                  pliant::TextOr(message, "the program failed")});
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
    if (learners < 0) return Invalid(Format("learners is {}: it must be at least 0", learners));
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
      return Fail(ErrorCode::kConflict, "the learner was not started: call pliant_start first");
    }
    learner->forecast = session.Forecast(ahead);
    if (!learner->forecast) return PLIANT_NOTHING;
    return OkOr(WriteStruct(WorkOf(*learner->forecast), work, "work"));
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
    return OkOr(WriteStruct(EndOf(*ending), end, "end"));
  });
}

}  // extern "C"
