/* pliant.h: the C interface through which any framework trains elastically.
 *
 * A program describes its training, registers the tensors of its state, and then fetches work and
 * does it until PLIANT_END:
 *
 *   pliant_learner* learner;
 *   pliant_open(&options, &learner);          reads the job's settings from the environment;
 *                                             without a job the same program trains alone
 *   pliant_describe(learner, &training);      samples, epochs or steps, batch size
 *   pliant_register(learner, &tensor, 0);     each parameter, buffer, optimizer state ...
 *   pliant_start(learner);
 *   for (;;) {
 *     pliant_next(learner, -1, &work);        waits
 *     switch (work.kind) {
 *       case PLIANT_TRAIN:     forward and backward of one logical shard, with its gradients in
 *         work.gradient, or pliant_put_gradient() for each; then as below
 *       case PLIANT_EVALUATE:  forward of one shard of the test set
 *         pliant_shard_done(learner, samples, loss, correct); break;
 *       case PLIANT_COMMIT:    one optimizer step from work.reduced
 *         pliant_committed(learner, 1); break;
 *       case PLIANT_LOADED:    the registered memory now holds another state
 *         pliant_loaded(learner); break;
 *       case PLIANT_END:
 *         pliant_get_end(learner, &end); pliant_close(learner); return end.exit_code;
 *     }
 *   }
 *
 * Steps and shards. A global batch is cut into a fixed number of logical shards. The result does
 * not depend on which learner computes a shard: its samples and its seed are the same everywhere.
 * After the last of this learner's shards, pliant_next waits for the shards of the other learners
 * and yields the commit. If the membership changes meanwhile, as planned or after a crash,
 * pliant_next yields the missing shards of the same step, or another state (PLIANT_LOADED) and a
 * later step. A program that does the work it is given, in that order, is right in all cases.
 *
 * State. The registered tensors are the whole training state. The program changes them only between
 * PLIANT_COMMIT and pliant_committed (and between PLIANT_EVALUATED and pliant_evaluated); the
 * library replaces them before PLIANT_LOADED. At other times the library reads them from threads of
 * its own. Buffers (tensors that a forward pass changes, like BatchNorm's statistics) are the
 * exception: the forward may write to them freely, because the library restores their committed
 * values before each shard. In PLIANT_COMMIT they hold the values that shard 0 left, and may change
 * with the rest. A step that is not taken leaves them unchanged.
 *
 * Threads. Use a learner from one thread at a time, except for the functions marked "Any thread". A
 * process has one learner at a time. The library never calls back.
 *
 * Errors. Functions return PLIANT_OK or an error; pliant_last_error() has the message for the
 * calling thread. Nothing throws. The library ends the process in two cases only: with exit code 1
 * when a job has a step timeout and the program does not answer within it (the program hangs); and,
 * after a line on standard error, when one of its threads has too little memory left even to report
 * that. Otherwise a lack of memory is an error of the call, or it ends the learner.
 *
 * Versions. Every struct begins with its size, which the caller sets to its sizeof. New fields are
 * only added at the end, and a field that an older caller does not have counts as zero. A new kind
 * of work is yielded only to a program that requests it. From the first release on,
 * PLIANT_ABI_VERSION increases with each addition; a library that could not serve older callers
 * would get another name.
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

#define PLIANT_ABI_VERSION 1

typedef struct pliant_learner pliant_learner;

/* ---- Errors ---- */

enum {
  PLIANT_OK = 0,
  PLIANT_NOTHING = 1,  /* nothing is available, or not within the given time; not an error */
  PLIANT_INVALID = -1, /* an argument or a setting is wrong: the message names it */
  PLIANT_ORDER = -2,   /* the call is not allowed in this state: the message says why */
  PLIANT_FAILED = -3,  /* the system failed: memory, a device, a file */
  PLIANT_INTERNAL = -4 /* a bug */
};
typedef int32_t pliant_status;

/* The error message of this thread's last call, "" if it succeeded, until its next. Any thread. */
PLIANT_API const char* pliant_last_error(void);

PLIANT_API int32_t pliant_abi_version(void);
/* "0.1.0" */
PLIANT_API const char* pliant_version(void);

/* ---- Opening ---- */

typedef struct pliant_options {
  size_t struct_size;
  const char* name; /* the program's, for people: "resnet18". NULL: "program" */
  /* The framework with its version and all else that affects the bits of a result:
   * "torch 2.6.0 threads=1". It must be equal on all learners of a bitwise job. NULL: "unknown". */
  const char* framework;
  /* The directory for checkpoints of a program that trains alone. NULL: PLIANT_CHECKPOINT_DIR, else
   * ./checkpoints. Ignored in a job, which always uses PLIANT_CHECKPOINT_DIR, its volume. */
  const char* checkpoint_dir;
  /* Why the program cannot use the GPUs of its container, for a condition of the job: "torch 2.6.0
   * was built without CUDA". NULL: it can, or there are none. */
  const char* gpu_problem;
  /* Not 0: the program handles SIGTERM and SIGINT itself and then calls pliant_leave. 0: from
   * pliant_open until pliant_close both make this learner leave at the next boundary; forked
   * children keep the default. */
  int32_t leave_signals;
  /* Not 0: from pliant_start on, also after pliant_close, this process keeps the memory that it
   * frees (glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, unless the environment sets them). To map
   * and clear pages again for each shard costs a tenth of a step. Set it in a process that only
   * trains, not in a larger application. */
  int32_t keep_freed_memory;
} pliant_options;

/* Reads the environment (docs/contracts.md §3). `options` may be NULL. The caller owns `*learner`
 * and frees it with pliant_close. */
PLIANT_API pliant_status pliant_open(const pliant_options* options, pliant_learner** learner);

/* Ends the learner at once if it has not ended, and frees it. NULL is allowed. Waits for running
 * calls of other threads. A later call returns PLIANT_ORDER; closing it again does nothing. */
PLIANT_API void pliant_close(pliant_learner* learner);

typedef struct pliant_job {
  size_t struct_size;
  int32_t alone;   /* not 0: there is no coordinator, and no other learner joins */
  int32_t bitwise; /* not 0: the result must not depend on the number of learners */
  int32_t max_learners;
  int32_t logical_shards;     /* 0: the job does not set it */
  uint64_t global_batch_size; /* 0: the job does not set it */
  uint64_t seed;
  int32_t has_seed; /* 0: the job sets no seed */
  const char* job;  /* "<namespace>/<name>", "" alone; the strings live as long as the learner */
  const char* learner;
  const char* checkpoint_dir; /* this job's own: it ends with the job's uid */
} pliant_job;

/* The job's settings, as the environment has them. The caller sets `job->struct_size`. */
PLIANT_API pliant_status pliant_get_job(const pliant_learner* learner, pliant_job* job);

/* ---- Description, before pliant_start ---- */

typedef struct pliant_training {
  size_t struct_size;
  uint64_t train_samples;
  uint64_t test_samples; /* 0: no evaluation */
  uint64_t epochs;       /* 0: as many as max_steps need */
  /* 0: the job's value, else 256. A value that differs from the job's is an error. */
  uint64_t global_batch_size;
  /* 0: the job's value; without one, 1 for a program that trains alone, else the largest power of
   * two that divides the global batch, but no more than the first power of two ≥ 2 · the maximum
   * number of training processes. A value that differs from the job's is an error. */
  int32_t logical_shards;
  uint64_t seed;
  int32_t has_seed; /* 0: `seed` is not set; the job's seed is used, else 0 */
  /* Not 0: samples that do not fill the last global batch of an epoch are dropped. Otherwise they
   * make a smaller batch, whose shards may have few samples, or none. */
  int32_t drop_last;
  /* Not 0: an epoch reads the training set in index order (0, 1, 2 ...), which suits data that are
   * read from front to back. 0: in an order drawn from the seed. */
  int32_t in_order;
  /* Not 0: PLIANT_EVALUATED is yielded after each evaluation. */
  int32_t wants_evaluation_results;
  /* A hash of the frozen parameters that each learner loads itself (registered only as
   * PLIANT_HOME). Learners and checkpoints of another base are refused. NULL: there are none. */
  const char* base;
  const char* base_name; /* for people: "gpt2@607a30d". NULL: unknown */
  /* Not 0: the training is complete after these steps, or after its epochs, whatever is first. */
  uint64_t max_steps;
  /* Not 0: an evaluation follows each step whose number, from 1, this divides, and the last step.
   * 0: one follows the last step of each complete epoch. A batch that grows allows only 0. */
  uint64_t evaluate_every;
  uint64_t checkpoint_every_steps; /* 0: the job's. A value that differs from it is an error. */
} pliant_training;

PLIANT_API pliant_status pliant_describe(pliant_learner* learner, const pliant_training* training);

typedef struct pliant_plan { /* batch and steps as at the beginning: the batch may grow */
  size_t struct_size;
  uint64_t global_batch_size;
  uint64_t steps_per_epoch;
  uint64_t total_steps;
  uint64_t seed;
  int32_t logical_shards;
} pliant_plan;

/* The plan that follows from the description and the job's settings. */
PLIANT_API pliant_status pliant_get_plan(const pliant_learner* learner, pliant_plan* plan);

/* The role of a registered tensor. */
enum {
  PLIANT_PARAMETER = 1, /* has a gradient, which is float32 whatever the parameter's type */
  PLIANT_BUFFER = 2,    /* the forward pass changes it */
  PLIANT_STATE = 3,     /* anything else: optimizer, schedule, frozen parameters ... */
  /* A frozen parameter of `base` (pliant_training): it goes to the final model, and is neither sent
   * to other learners, nor written to checkpoints, nor compared. It must not change. */
  PLIANT_HOME = 4
};

enum {
  PLIANT_FLOAT32 = 1,
  PLIANT_FLOAT64 = 2,
  PLIANT_FLOAT16 = 3,
  PLIANT_BFLOAT16 = 4,
  PLIANT_INT64 = 5,
  PLIANT_INT32 = 6,
  PLIANT_UINT8 = 7,
  PLIANT_BOOL = 8,
  PLIANT_INT8 = 9,
  PLIANT_INT16 = 10,
  PLIANT_FLOAT8_E4M3 = 11,
  PLIANT_FLOAT8_E5M2 = 12
};

/* Where memory is. PLIANT_CUDA: memory of an NVIDIA GPU, in the GPU's primary context, which
 * frameworks use. All such memory of a learner is on one GPU. Registered tensors are the training
 * state where they are: the library reads them there when it needs them, for a checkpoint or a
 * learner that joins, and that may be while the next step is computed.
 *
 * A program that names its stream (pliant_use_stream) need not wait for the GPU before a call, and
 * the library orders its own work by events. If it does so before pliant_start, and all parameters
 * are on the GPU, its gradients stay there as well: see `device` of pliant_work. Then no call waits
 * for the GPU during the training, except pliant_gradient_norm. Without a name, each call that
 * touches such memory first waits for all earlier work of the context (cuCtxSynchronize).
 * If a copy fails in an answer or in pliant_next, this learner ends. Without a driver calls return
 * PLIANT_FAILED; the message names the remedy. */
enum { PLIANT_CPU = 0, PLIANT_CUDA = 1 };

typedef struct pliant_tensor {
  size_t struct_size;
  /* Unique. Tensors named "model.…" are the model: they go to the model file of a checkpoint and to
   * the final model, and their hash is the hash of the training. A parameter's name must begin with
   * "model.", and so should that of a buffer that is saved with the model. All other tensors go to
   * the optimizer file. Learners compare all tensors except those named "local.…", which may differ
   * between learners. A PLIANT_UINT8 tensor named "….json" holds the length of a JSON text (eight
   * bytes, little-endian), the text and zeros: where learners differ in it, the message names the
   * value. */
  const char* name;
  int32_t role;
  int32_t dtype;
  int32_t dimensions; /* 0: a scalar */
  int32_t device;
  const int64_t* shape;
  void* data; /* contiguous; owned by the caller; must stay in place until pliant_close */
} pliant_tensor;

/* Register the tensors in the same order on all learners. `index` (may be NULL) receives the number
 * among those of its role, from 0. */
PLIANT_API pliant_status pliant_register(pliant_learner* learner, const pliant_tensor* tensor,
                                         int32_t* index);

/* Names the CUDA stream (CUstream, cudaStream_t; NULL: the default stream) on which the program
 * queues its work on registered tensors and gradients. Call it after the first such tensor is
 * registered, and again whenever the program continues on another stream: that one then waits for
 * the work queued so far. The stream must live until pliant_close. */
PLIANT_API pliant_status pliant_use_stream(pliant_learner* learner, void* stream);

/* The files of the final model (docs/contracts.md §5). */
typedef struct pliant_final {
  size_t struct_size;
  const char* stem;    /* <stem>.safetensors. NULL: "model" */
  uint64_t file_bytes; /* a larger model has several files, and an index; 0: 5 GB */
  /* The tensors in the files, by their registered names, and the names that they get there. NULL:
   * all tensors of the model, without "model.". */
  const char* const* tensors;
  const char* const* names;
  int32_t tensor_count;
  /* Texts that are written, too: a configuration. At most 64, of at most 16 MiB each. */
  int32_t file_count;
  const char* const* files; /* their names: letters, digits and "_-." */
  const char* const* file_texts;
  const size_t* file_sizes;
} pliant_final;

/* Describes the files of the final model, before pliant_start. Copies all that is given. Without
 * this call they are those of a struct of zeros. */
PLIANT_API pliant_status pliant_describe_final(pliant_learner* learner, const pliant_final* final);

/* Starts the learner's own threads: it connects to its coordinator or, when it trains alone, looks
 * for a checkpoint to continue from. The registered memory must hold the initial training state,
 * the same on all learners. */
PLIANT_API pliant_status pliant_start(pliant_learner* learner);

/* ---- Work ---- */

enum {
  PLIANT_TRAIN = 1,
  PLIANT_EVALUATE = 2,
  PLIANT_COMMIT = 3,
  PLIANT_LOADED = 4,
  PLIANT_END = 5,
  PLIANT_EVALUATED = 6 /* with wants_evaluation_results: an evaluation is over */
};

typedef struct pliant_work {
  size_t struct_size;
  int32_t kind;
  int32_t shard; /* TRAIN, EVALUATE */
  uint64_t epoch;
  uint64_t step; /* optimizer steps committed before */
  /* TRAIN, EVALUATE: indices into the training set or the test set. Never empty. */
  const uint64_t* samples;
  size_t sample_count;
  /* TRAIN: a hash of (the job's seed, epoch, step, shard), for dropout and augmentation. */
  uint64_t seed;
  /* TRAIN: memory for the gradient of the *sum* of the samples' losses: the gradients of all
   * parameters, one after another, in the order of registration. Parameters that were not handed in
   * count as zero. */
  float* gradient;
  /* COMMIT: the mean gradient over the samples of the global batch, in the same layout. Read-only.
   * A program that weighs (pliant_report_sums) multiplies it by `mean_factor`. All pointers in this
   * struct are valid until the work is answered. */
  const float* reduced;
  size_t gradient_elements;
  /* COMMIT, EVALUATED: sums over the samples of the global batch or the test set. They are equal on
   * all learners, and so is a decision based on them. */
  double samples_sum;
  double loss_sum;
  double correct_sum;
  /* TRAIN: not 0: gradients are sent as soon as they are handed in. 0: they wait for another shard,
   * so handing them in before the end gains nothing. */
  int32_t travels_early;
  /* TRAIN, COMMIT: not 0: the epoch's last step. EVALUATE: not 0: the evaluation's last part. */
  int32_t last;
  /* COMMIT: the batch of the job's beginning was doubled this many times by the job's batch mode,
   * and the learning rate may follow. */
  int32_t doublings;
  /* TRAIN, COMMIT: where `gradient` and `reduced` are. PLIANT_CUDA: in memory of the GPU, for work
   * that is queued on the program's stream from now on. */
  int32_t device;
  /* COMMIT: the step at which a training would be whose batch never grew: for schedules that count
   * steps. It is `step` while the batch is that of the beginning. */
  uint64_t schedule_step;
  /* COMMIT, EVALUATED: what loss_sum and correct_sum are sums over: the sum of the weights, or
   * samples_sum if the program does not weigh. */
  double weight_sum;
  /* COMMIT: the factor from the mean over samples to the mean over weights. 1: the program does not
   * weigh. 0: all weights are zero. */
  double mean_factor;
  /* COMMIT, EVALUATED: the further sums of pliant_report_sums, over all shards, by ascending name.
   * They are equal on all learners. */
  const char* const* sum_names;
  const double* sum_values;
  int32_t sum_count;
  /* COMMIT, EVALUATED: not 0: this learner is the membership's first, which writes metrics.jsonl.
   * It is for output only: a decision that changes the training must be the same on all. */
  int32_t first;
} pliant_work;

/* Waits for work, at most this many seconds (negative: without limit; 0: does not wait), and
 * prepares it, which may take as long as a copy of the state. PLIANT_NOTHING: no work yet. The
 * previous work must have been answered. After PLIANT_END every call yields PLIANT_END. */
PLIANT_API pliant_status pliant_next(pliant_learner* learner, double seconds, pliant_work* work);

/* TRAIN: hands in the gradients of these parameters: they are in work.gradient and will not change.
 * They may be sent to other learners at once, while the backward pass continues, so hand in each as
 * soon as it is final, the last registered first. A gradient can be handed in once a shard; again
 * is an error (PLIANT_INVALID). */
PLIANT_API pliant_status pliant_gradients_ready(pliant_learner* learner, int32_t first_parameter,
                                                int32_t count);

/* TRAIN: hands in the gradient of one parameter from `data` (contiguous, of the parameter's shape).
 * It is copied to work.gradient, multiplied by `scale`: a program whose loss is the mean over the
 * shard's samples passes their number. `dtype`: PLIANT_FLOAT32, PLIANT_FLOAT64, PLIANT_FLOAT16 or
 * PLIANT_BFLOAT16. Memory of the GPU may be freed or changed in the order of the stream. */
PLIANT_API pliant_status pliant_put_gradient(pliant_learner* learner, int32_t parameter,
                                             const void* data, int32_t dtype, int32_t device,
                                             double scale);

/* TRAIN: the same for all parameters in one call, for a shard with travels_early 0. `data` has one
 * entry for each parameter, in the order of registration; NULL: this gradient is not handed in.
 * From then on the contents of work.gradient belong to the library. */
PLIANT_API pliant_status pliant_put_gradients(pliant_learner* learner, const void* const* data,
                                              int32_t dtype, int32_t device, double scale);

/* TRAIN, EVALUATE: reports how long the program waited for the samples of the current shard, for
 * progress and metrics. Call it before the answer; several calls add up. */
PLIANT_API pliant_status pliant_data_waited(pliant_learner* learner, double seconds);

/* Further sums of a shard. */
typedef struct pliant_sums {
  size_t struct_size;
  /* Not 0: the program weighs by `weight`, a number ≥ 0, in place of samples: the tokens that count
   * for the loss. Then loss and correct are sums over them, and the gradient is that of this loss.
   * A program weighs all of its training shards or none. A shard of weight 0 has no gradient. */
  int32_t weighs;
  int32_t count; /* of named sums; at most 32 in a step, over all its shards */
  double weight;
  /* The names in ascending order, of 1 to 63 letters, digits and "_-./" each, but not samples,
   * weight, loss, correct or accuracy. A shard that lacks a name adds zero to its sum. */
  const char* const* names;
  const double* values; /* NULL: they follow loss and correct in `sums` of pliant_shard_done_on */
} pliant_sums;

/* TRAIN, EVALUATE: reports further sums of the current shard. Call it once, before the answer. */
PLIANT_API pliant_status pliant_report_sums(pliant_learner* learner, const pliant_sums* sums);

/* Answers TRAIN and EVALUATE. `loss` and `correct` are sums over the shard's samples, or over its
 * weight, not means. `samples`: how many samples count, usually all. */
PLIANT_API pliant_status pliant_shard_done(pliant_learner* learner, double samples, double loss,
                                           double correct);

/* The same with loss and correct in memory of the program's GPU: `sums` are two doubles, and one
 * for each further sum without a value, that the work on the program's stream makes. That work may
 * be under way still, and `sums` may be freed or changed in the order of the stream. */
PLIANT_API pliant_status pliant_shard_done_on(pliant_learner* learner, double samples,
                                              const double* sums);

/* COMMIT: the Euclidean norm of gradients, for clipping. Its bits do not depend on the machine, on
 * threads or on learners (docs/decisions/norms-by-cells.md). `data` has one entry for each
 * parameter, in the order of registration (contiguous, PLIANT_FLOAT32); NULL: zero. It is not
 * finite if and only if an element is not. */
PLIANT_API pliant_status pliant_gradient_norm(pliant_learner* learner, const void* const* data,
                                              int32_t device, double* norm);

/* Answers COMMIT. `taken` 0: the program skipped the step; the buffers stay unchanged, too. All
 * learners must decide the same, from values that are equal on all of them. */
PLIANT_API pliant_status pliant_committed(pliant_learner* learner, int32_t taken);

/* Answers EVALUATED. Before it the program may change the state as in a commit, alike on all. */
PLIANT_API pliant_status pliant_evaluated(pliant_learner* learner);

/* Call before the answer to COMMIT, EVALUATED or LOADED: the training is complete with the state
 * after that answer. All learners must decide this alike, from values equal on all of them. Call it
 * again when a complete state is loaded: keep the decision in the registered state. */
PLIANT_API pliant_status pliant_stop(pliant_learner* learner);

/* Call before the answer to COMMIT or EVALUATED: a checkpoint of the state after it is written; if
 * another is being written, of a later one. Only the call on the membership's first learner counts,
 * but any may become that: call it on all. */
PLIANT_API pliant_status pliant_save_checkpoint(pliant_learner* learner);

/* Call before the answer to COMMIT or EVALUATED: the model after it is the best so far, and
 * replaces <job>/best/, in the layout of the final model, with `note` as best.json. As above: on
 * all. */
PLIANT_API pliant_status pliant_export_best(pliant_learner* learner, const char* note);

/* Answers LOADED. */
PLIANT_API pliant_status pliant_loaded(pliant_learner* learner);

/* At any time: the program cannot continue. `wrong_input` not 0: a retry would not help. The
 * learner ends as failed with this message; the others continue without it. */
PLIANT_API pliant_status pliant_fail(pliant_learner* learner, int32_t wrong_input,
                                     const char* message);

/* This learner leaves at the next boundary, as after SIGTERM. Any thread. */
PLIANT_API pliant_status pliant_leave(pliant_learner* learner);

/* Application-driven elasticity: requests this number of learners from now on; 0: as many as it can
 * get. Call it alike on all learners; the job's limits and fair share decide. Any thread. */
PLIANT_API pliant_status pliant_request_learners(pliant_learner* learner, int32_t learners);

/* Predicts a shard, to read its samples ahead: the one that pliant_next will yield `ahead` shards
 * after the next one, if nothing changes. Fills kind, shard, epoch, step, seed and samples, which
 * are valid until the next call. PLIANT_NOTHING: none is known. It is never work to be done. */
PLIANT_API pliant_status pliant_forecast(pliant_learner* learner, uint64_t ahead,
                                         pliant_work* work);

/* ---- Reports ---- */

/* Stores a copy of the program's output next to the checkpoints, with the library's own log, if the
 * learner belongs to a job (docs/contracts.md §5). The program prints it, too. Never waits for the
 * volume. Any thread, but not a forked child. */
PLIANT_API pliant_status pliant_keep_output(pliant_learner* learner, const char* text,
                                            size_t bytes);

/* The next line of metrics.jsonl that this learner wrote (docs/contracts.md §5): only the first
 * learner of a membership writes. PLIANT_NOTHING: none. `*line` is valid until the next call. */
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
  const char* message; /* the strings live as long as the learner */
  const char* parameters_sha256;
} pliant_end;

/* How the learner ended; available after PLIANT_END. */
PLIANT_API pliant_status pliant_get_end(const pliant_learner* learner, pliant_end* end);

#ifdef __cplusplus
}
#endif

#endif /* PLIANT_H_ */
