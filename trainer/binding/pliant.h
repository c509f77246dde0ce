/* pliant.h: the C interface by which any framework trains elastically.
 *
 * A program describes its training, registers the tensors that it consists of, and then asks for
 * work and does it, until there is none:
 *
 *   pliant_learner* learner;
 *   pliant_open(&options, &learner);          the job's settings come from the environment;
 *                                             with none, the same program trains alone
 *   pliant_describe(learner, &training);      samples, epochs, batch size
 *   pliant_register(learner, &tensor, 0);     each parameter, buffer, optimizer state ...
 *   pliant_start(learner);
 *   for (;;) {
 *     pliant_next(learner, -1, &work);        waits
 *     switch (work.kind) {
 *       case PLIANT_TRAIN:                    forward and backward of one logical shard
 *         ... write gradients to work.gradient, or pliant_put_gradient() each ...
 *         pliant_shard_done(learner, samples, loss, correct);
 *         break;
 *       case PLIANT_EVALUATE:                 forward of one shard of the test set
 *         pliant_shard_done(learner, samples, loss, correct);
 *         break;
 *       case PLIANT_COMMIT:                   one optimizer step from work.reduced
 *         pliant_committed(learner, 1);
 *         break;
 *       case PLIANT_LOADED:                   the registered memory holds another state now
 *         pliant_loaded(learner);
 *         break;
 *       case PLIANT_END:
 *         pliant_get_end(learner, &end);
 *         pliant_close(learner);
 *         return end.exit_code;
 *     }
 *   }
 *
 * Steps and shards. A global batch is cut into a fixed number of logical shards, and who computes
 * a shard changes nothing: its samples, its seed and its result are the same. After the last of
 * this learner's shards, pliant_next waits for the others' and yields the commit. If the others
 * change meanwhile, by plan or by a crash, it yields shards of the same step again, those that are
 * missing then, or another state (PLIANT_LOADED) and a later step. A program that does what it is
 * given, in the order in which it is given, is right in all cases: there is nothing else to know
 * of memberships.
 *
 * State. What is registered is the whole training state: it changes only between PLIANT_COMMIT and
 * pliant_committed (PLIANT_EVALUATED and pliant_evaluated), or is replaced before PLIANT_LOADED.
 * The library reads it at other times, from threads of its own. Buffers (what a forward pass
 * changes, as BatchNorm's statistics) are the exception: the forward may write to them freely,
 * because the library sets them back to what is committed before each shard. In PLIANT_COMMIT they
 * hold what shard 0 left, and may change with the rest; a step that is not taken leaves them as
 * they were.
 *
 * Threads. One learner is used from one thread at a time, except for the functions said to be for
 * any thread. A process has one learner at a time. The library never calls back.
 *
 * Errors. Functions return PLIANT_OK or an error, whose sentence pliant_last_error() has for the
 * calling thread. Nothing throws, and nothing but SIGKILL and the program itself ends the process;
 * but in a job with a step timeout a program that has not answered for so long hangs, and the
 * library ends its process with exit code 1. So it does, with a line on standard error, where one
 * of its threads has no memory left even to say so; before that, a lack of memory is an error of
 * the call, or how the learner ends.
 *
 * Versions. Structs begin with their size, which the caller sets to sizeof: fields are only ever
 * added at the end, and what an older caller does not know has its zero meaning. Unknown kinds of
 * work are not yielded unless the program asks for them. PLIANT_ABI_VERSION grows when something
 * is added; a library that could not serve older callers would have another name. (Versions 3 and 4
 * were never released: what was built with their headers is to be built again.)
 */
#ifndef PLIANT_H_
#define PLIANT_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PLIANT_API __attribute__((visibility("default")))
#else
#define PLIANT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PLIANT_ABI_VERSION 5

typedef struct pliant_learner pliant_learner;

/* ---- Errors ---- */

enum {
  PLIANT_OK = 0,
  PLIANT_NOTHING = 1,  /* there is none, or not in the time given: no error */
  PLIANT_INVALID = -1, /* an argument or a setting is wrong: the sentence names it */
  PLIANT_ORDER = -2,   /* not now: the sentence says what is expected */
  PLIANT_FAILED = -3,  /* the machine refuses: memory, a device, a file */
  PLIANT_INTERNAL = -4 /* a bug */
};
typedef int32_t pliant_status;

/* The sentence of the last error on this thread, "" if there was none. Valid until the thread's
 * next call. Any thread. */
PLIANT_API const char* pliant_last_error(void);

PLIANT_API int32_t pliant_abi_version(void);
/* "0.1.0" */
PLIANT_API const char* pliant_version(void);

/* ---- Opening ---- */

typedef struct pliant_options {
  size_t struct_size;
  /* Of the program, for people: "resnet18". NULL: "program". */
  const char* name;
  /* What computes, with its version and whatever else the bits depend on: "torch 2.6.0 threads=1".
   * Learners of a bitwise job must have the same. NULL: "unknown". */
  const char* framework;
  /* Where checkpoints go, alone. NULL: PLIANT_CHECKPOINT_DIR, else ./checkpoints. In a job always
   * PLIANT_CHECKPOINT_DIR, which is its volume. */
  const char* checkpoint_dir;
  /* Not 0: leave SIGTERM, and SIGINT, to the program, which then calls pliant_leave. Otherwise both
   * make this learner leave at the next boundary, from pliant_open until pliant_close; children
   * that are forked keep the default. */
  int32_t leave_signals;
  int32_t reserved;
  /* Since 3. Why the program cannot use the GPUs that its container holds, for a condition of the
   * job: "torch 2.6.0 was built without CUDA". NULL: it can, or there are none. */
  const char* gpu_problem;
  /* Since 5. Not 0: from pliant_start on, and after pliant_close, too, what this process frees is
   * used again by it, and not given back to the system (mallopt of glibc, M_TRIM_THRESHOLD and
   * M_MMAP_THRESHOLD), unless the environment sets the C library's thresholds. Each shard frees
   * its activations and gradients, and the next one would have the pages cleared and mapped anew: a
   * tenth of a step. For a process that trains, not for a host of which training is a part. */
  int32_t keep_freed_memory;
  int32_t reserved2;
} pliant_options;

/* Reads the environment (docs/contracts.md §3). `options` may be NULL. */
PLIANT_API pliant_status pliant_open(const pliant_options* options, pliant_learner** learner);

/* Ends this learner's part at once if it has not ended, and frees it. NULL is fine. Calls that are
 * under way on other threads are waited for, pliant_next with PLIANT_END; a later one is refused
 * with PLIANT_ORDER, and to close it again does nothing, until another learner is opened. */
PLIANT_API void pliant_close(pliant_learner* learner);

typedef struct pliant_job {
  size_t struct_size;
  int32_t alone;   /* no coordinator: nobody joins */
  int32_t bitwise; /* the result must not depend on the number of learners */
  int32_t max_learners;
  int32_t logical_shards;     /* 0: the job does not say */
  uint64_t global_batch_size; /* 0: the job does not say */
  uint64_t seed;
  int32_t has_seed; /* 0: the job does not say */
  int32_t reserved;
  const char* job; /* "<namespace>/<name>", "" alone; the strings live as the learner */
  const char* learner;
  const char* checkpoint_dir; /* of the job: with the job's uid */
} pliant_job;

/* What the environment says. `job->struct_size` is set by the caller. */
PLIANT_API pliant_status pliant_get_job(const pliant_learner* learner, pliant_job* job);

/* ---- Description, before pliant_start ---- */

typedef struct pliant_training {
  size_t struct_size;
  uint64_t train_samples;
  uint64_t test_samples; /* 0: no evaluation */
  uint64_t epochs;
  /* 0: the job's, else 256. One that contradicts the job's is an error. */
  uint64_t global_batch_size;
  /* 0: the job's, else, alone, 1; else the largest power of two that divides the global batch, at
   * most the next one ≥ 4 · max_learners. One that contradicts the job's is an error. */
  int32_t logical_shards;
  int32_t has_seed; /* 0: the job's, else 0 */
  uint64_t seed;
  /* Not 0: samples that do not fill the last global batch of an epoch are left out. Otherwise they
   * make a smaller batch, whose shards may have few samples, or none. */
  int32_t drop_last;
  int32_t reserved;
  /* Since 5. Not 0: an epoch goes through the training set as it lies (0, 1, 2 ...), which suits
   * data that are read from front to back. Otherwise in an order drawn from the seed. */
  int32_t in_order;
  /* Since 5. Not 0: after each evaluation PLIANT_EVALUATED is yielded. */
  int32_t wants_evaluation_results;
} pliant_training;

PLIANT_API pliant_status pliant_describe(pliant_learner* learner, const pliant_training* training);

typedef struct pliant_plan {
  size_t struct_size;
  uint64_t global_batch_size;
  uint64_t steps_per_epoch;
  uint64_t total_steps;
  uint64_t seed;
  int32_t logical_shards;
  int32_t reserved;
} pliant_plan;

/* What follows from the description and the job. */
PLIANT_API pliant_status pliant_get_plan(const pliant_learner* learner, pliant_plan* plan);

/* What a registered tensor is. */
enum {
  PLIANT_PARAMETER = 1, /* has a gradient, which is float32 whatever the parameter's type */
  PLIANT_BUFFER = 2,    /* the forward pass changes it */
  PLIANT_STATE = 3      /* anything else: optimizer, schedule, parameters that are frozen ... */
};

enum {
  PLIANT_FLOAT32 = 1,
  PLIANT_FLOAT64 = 2,
  PLIANT_FLOAT16 = 3,
  PLIANT_BFLOAT16 = 4,
  PLIANT_INT64 = 5,
  PLIANT_INT32 = 6,
  PLIANT_UINT8 = 7,
  PLIANT_BOOL = 8
};

/* Where memory is. Since 5, PLIANT_CUDA: an NVIDIA GPU's, of any context of this process, copied
 * through host memory for now. It is only touched within calls, on the program's thread, which wait
 * for all that its context was told to do before (cuCtxSynchronize), and return when the copy is
 * made: the program need not order its streams. Read by pliant_start (all that is registered),
 * pliant_put_gradient, pliant_put_gradients, pliant_shard_done (buffers, if it was shard 0),
 * pliant_committed and pliant_evaluated; written by pliant_next, and buffers by pliant_committed,
 * too. When such a copy fails in an answer or in pliant_next, this learner
 * ends. Its context lives until pliant_close. work.gradient and work.reduced are host memory.
 * PLIANT_FAILED, with the remedy, where there is no driver. */
enum { PLIANT_CPU = 0, PLIANT_CUDA = 1 };

typedef struct pliant_tensor {
  size_t struct_size;
  /* Unique. Those that begin with "model." are the model: they go to the model file of a checkpoint
   * and to the final model, and their hash is the training's. A parameter's must begin so, and so
   * should that of a buffer that the model is saved with. The others go to the optimizer file.
   * Learners compare "model." and "optimizer.": what is not alike on all of them has another. */
  const char* name;
  int32_t role;
  int32_t dtype;
  int32_t dimensions; /* 0: a scalar */
  int32_t device;
  const int64_t* shape;
  void* data; /* contiguous; stays where it is until pliant_close */
} pliant_tensor;

/* The order must be the same on all learners. `index` (may be NULL): counts those of the same role,
 * from 0. */
PLIANT_API pliant_status pliant_register(pliant_learner* learner, const pliant_tensor* tensor,
                                         int32_t* index);

/* The learner's own threads begin: it says hello to its coordinator or, alone, looks for a
 * checkpoint to go on from. The registered memory must hold the state that training starts with,
 * the same on all learners. */
PLIANT_API pliant_status pliant_start(pliant_learner* learner);

/* ---- Work ---- */

enum {
  PLIANT_TRAIN = 1,
  PLIANT_EVALUATE = 2,
  PLIANT_COMMIT = 3,
  PLIANT_LOADED = 4,
  PLIANT_END = 5,
  PLIANT_EVALUATED = 6 /* since 3, to who asks for it: an epoch's evaluation is over */
};

typedef struct pliant_work {
  size_t struct_size;
  int32_t kind;
  int32_t shard; /* TRAIN, EVALUATE */
  uint64_t epoch;
  uint64_t step; /* optimizer steps committed before */
  /* TRAIN, EVALUATE: indices into the training set or the test set. Never none. */
  const uint64_t* samples;
  size_t sample_count;
  /* TRAIN: a hash of (the job's seed, epoch, step, shard), for dropout and augmentation. */
  uint64_t seed;
  /* TRAIN: where the gradient of the *sum* of the samples' losses goes, the parameters' gradients
   * behind each other in the order of their registration. What is not handed in counts as zero. */
  float* gradient;
  /* COMMIT: the mean gradient over the samples of the global batch, laid out alike. Not to be
   * written. Valid, as all pointers here, until the work is answered. */
  const float* reduced;
  size_t gradient_elements;
  /* COMMIT, EVALUATED: sums over the samples of the global batch or the test set, equal on all
   * learners: a decision made on them is, too. */
  double samples_sum;
  double loss_sum;
  double correct_sum;
  /* Since 2. TRAIN: not 0: gradients that are handed in travel at once. 0: they wait for another
   * shard, so that handing them in before the end gains nothing. */
  int32_t travels_early;
  int32_t reserved;
} pliant_work;

/* Waits for work, at most this many seconds (negative: without limit; 0: not at all). Work that has
 * come is prepared within the call, which may take as long as a copy of the state.
 * PLIANT_NOTHING: nothing yet. The work before must have been answered. Once PLIANT_END was
 * yielded, it always is. */
PLIANT_API pliant_status pliant_next(pliant_learner* learner, double seconds, pliant_work* work);

/* TRAIN: the gradients of these parameters are in work.gradient and will not change: they may be on
 * their way to other learners when this returns, while the backward pass goes on, so it pays to
 * hand each in as it comes, those that were registered last first. One that was handed in before in
 * this shard is refused (PLIANT_INVALID). */
PLIANT_API pliant_status pliant_gradients_ready(pliant_learner* learner, int32_t first_parameter,
                                                int32_t count);

/* TRAIN: the same for one parameter, whose gradient is elsewhere (contiguous, of the parameter's
 * shape): it is multiplied by `scale` on its way. A program whose loss is the mean over the shard's
 * samples hands in their number. `dtype`: PLIANT_FLOAT32 or PLIANT_FLOAT64. */
PLIANT_API pliant_status pliant_put_gradient(pliant_learner* learner, int32_t parameter,
                                             const void* data, int32_t dtype, int32_t device,
                                             double scale);

/* Since 4. TRAIN: the same for all parameters in one call, for a shard whose gradients do not
 * travel early. `data` has an entry for each, in the order of their registration; NULL: it is not
 * handed in. What work.gradient holds from then on is the runtime's. */
PLIANT_API pliant_status pliant_put_gradients(pliant_learner* learner, const void* const* data,
                                              int32_t dtype, int32_t device, double scale);

/* TRAIN, EVALUATE: how long the program waited for the samples of the shard at hand, for progress
 * and metrics. Before it is answered; what it says twice adds up. */
PLIANT_API pliant_status pliant_data_waited(pliant_learner* learner, double seconds);

/* Answers TRAIN and EVALUATE. Sums over the shard's samples, not means. `samples`: how many of them
 * count, commonly all. */
PLIANT_API pliant_status pliant_shard_done(pliant_learner* learner, double samples, double loss,
                                           double correct);

/* Answers COMMIT. `taken` 0: the program decided, on what all learners have in common, to skip the
 * step: the buffers stay as they were, too. */
PLIANT_API pliant_status pliant_committed(pliant_learner* learner, int32_t taken);

/* Answers EVALUATED, on all learners alike: what is registered may change before, as in a commit.
 */
PLIANT_API pliant_status pliant_evaluated(pliant_learner* learner);

/* Before the answer to COMMIT, EVALUATED or LOADED: the training is complete with the state that
 * the answer leaves, whatever epochs are left. To be called alike on all learners, so on what they
 * have in common; and again when a state is loaded with which it is complete, so the program keeps
 * that in its state. */
PLIANT_API pliant_status pliant_stop(pliant_learner* learner);

/* Answers LOADED. */
PLIANT_API pliant_status pliant_loaded(pliant_learner* learner);

/* Instead of any answer, and at any other time: the program cannot go on. `wrong_input` not 0:
 * trying again would not help. The learner ends as failed with this message; the others go on
 * without it. */
PLIANT_API pliant_status pliant_fail(pliant_learner* learner, int32_t wrong_input,
                                     const char* message);

/* Makes this learner leave at the next boundary, as SIGTERM does. Any thread. */
PLIANT_API pliant_status pliant_leave(pliant_learner* learner);

/* Application-driven elasticity: the program wants to train on so many learners from now on, within
 * the job's limits and what is fair for it; 0: on as many as there are for it. To be called alike
 * on all learners; the first learner of a membership tells it. No promise: the job may stay as it
 * is. Any thread. */
PLIANT_API pliant_status pliant_request_learners(pliant_learner* learner, int32_t learners);

/* ---- Data ahead ---- */

/* The shard that, if nothing changes, pliant_next will yield `ahead` shards after the one it
 * yielded last (0: right after): so that its samples can be read before. Fills kind, shard, epoch,
 * step, seed and samples, which are valid until the next call of this function. PLIANT_NOTHING: it
 * cannot be told (yet), or there is none. A forecast: shards that come are to be computed whatever
 * it said. */
PLIANT_API pliant_status pliant_forecast(pliant_learner* learner, uint64_t ahead,
                                         pliant_work* work);

/* ---- What is reported ---- */

/* Text that the program writes to its output is kept beside the checkpoints too, with the library's
 * own log, where the learner is one of a job (docs/contracts.md §5). A copy: what the program
 * prints it still prints. Never waits for the volume. Any thread, but not a forked child. */
PLIANT_API pliant_status pliant_keep_output(pliant_learner* learner, const char* text,
                                            size_t bytes);

/* The next line of metrics.jsonl that this learner wrote (docs/contracts.md §5), PLIANT_NOTHING if
 * there is none. Only the first learner of a membership writes some, so what is made of them
 * (progress, event files) is made once. Valid until the next call of this function. */
PLIANT_API pliant_status pliant_next_metrics(pliant_learner* learner, const char** line);

enum {
  PLIANT_COMPLETED = 1,
  PLIANT_DRAINED = 2,
  PLIANT_LEARNER_FAILED = 3,
  PLIANT_INTERRUPTED = 4
};

typedef struct pliant_end {
  size_t struct_size;
  int32_t reason;
  int32_t exit_code; /* of the process (docs/contracts.md §3) */
  uint64_t step;
  const char* message; /* the strings live as the learner */
  const char* parameters_sha256;
} pliant_end;

/* How it ended, after PLIANT_END. */
PLIANT_API pliant_status pliant_get_end(const pliant_learner* learner, pliant_end* end);

#ifdef __cplusplus
}
#endif

#endif /* PLIANT_H_ */
