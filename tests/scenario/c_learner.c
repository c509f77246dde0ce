/* A learner in C that uses only pliant.h. Least squares with momentum, noise like that of dropout,
 * and a buffer that follows the data's mean, as in BatchNorm. TOY_EPOCHS sets the duration,
 * TOY_FAIL_AT_STEP makes it fail. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/binding/pliant.h"

enum { kFeatures = 40, kTrainSamples = 250, kTestSamples = 50 };

static const float kLearningRate = 0.02F;
static const float kMomentum = 0.9F;

/* The training state. */
static float weights[kFeatures];
static float bias[1];
static float momentum[kFeatures + 1];
static float running_mean[1];
static int64_t updates;

static pliant_learner* learner;

static void Check(pliant_status status, const char* what) {
  if (status == PLIANT_OK) return;
  fprintf(stderr, "%s: %s\n", what, pliant_last_error());
  exit(2);
}

static uint64_t Number(const char* name, uint64_t otherwise) {
  const char* const text = getenv(name);
  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* Returns a value in [-1, 1] from a hash. */
static float Noise(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15U + b + 1;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  z ^= z >> 31;
  return (float)(z >> 40) / (float)(1U << 23) - 1.0F;
}

static void Register(const char* name, int32_t role, int32_t dtype, int64_t elements, void* data) {
  const pliant_tensor tensor = {.struct_size = sizeof tensor,
                                .name = name,
                                .role = role,
                                .dtype = dtype,
                                .dimensions = 1,
                                .device = PLIANT_CPU,
                                .shape = &elements,
                                .data = data};
  Check(pliant_register(learner, &tensor, NULL), name);
}

static void Compute(const pliant_work* work, int train) {
  float* const gradient = work->gradient; /* of the weights; the bias's is handed in */
  float bias_gradient = 0;
  double loss = 0;
  double correct = 0;
  float mean = 0;
  if (train) memset(gradient, 0, sizeof weights);
  for (size_t i = 0; i < work->sample_count; ++i) {
    const uint64_t sample = work->samples[i];
    float score = bias[0];
    float target = 0;
    for (uint64_t f = 0; f < kFeatures; ++f) {
      const float x = Noise(sample + (train ? 0 : kTrainSamples), f) - 0.1F * running_mean[0];
      score += weights[f] * x;
      target += x * (float)(f % 3);
    }
    const float error = score - target;
    for (uint64_t f = 0; train && f < kFeatures; ++f) {
      const float x = Noise(sample, f) - 0.1F * running_mean[0];
      gradient[f] += error * x * (1.0F + 0.1F * Noise(work->seed, f));
    }
    bias_gradient += error;
    mean += Noise(sample, 0);
    loss += (double)error * error / 2;
    correct += error < 0.5F && error > -0.5F;
  }
  if (train) {
    Check(pliant_gradients_ready(learner, 0, 1), "weights' gradient");
    Check(pliant_put_gradient(learner, 1, &bias_gradient, PLIANT_FLOAT32, PLIANT_CPU, 1.0), "bias");
    running_mean[0] = 0.9F * running_mean[0] + 0.1F * mean / (float)work->sample_count;
  }
  Check(pliant_shard_done(learner, (double)work->sample_count, loss, correct), "shard done");
}

static void Commit(const pliant_work* work) {
  for (int i = 0; i <= kFeatures; ++i) {
    momentum[i] = kMomentum * momentum[i] + work->reduced[i];
    float* const parameter = i < kFeatures ? &weights[i] : &bias[0];
    *parameter -= kLearningRate * momentum[i];
  }
  ++updates;
  Check(pliant_committed(learner, 1), "committed");
}

int main(void) {
  const pliant_options options = {
      .struct_size = sizeof options, .name = "least-squares", .framework = "c 1"};
  Check(pliant_open(&options, &learner), "open");
  const pliant_training training = {.struct_size = sizeof training,
                                    .train_samples = kTrainSamples,
                                    .test_samples = kTestSamples,
                                    .epochs = Number("TOY_EPOCHS", 10),
                                    .global_batch_size = 32};
  Check(pliant_describe(learner, &training), "describe");
  Register("model.weights", PLIANT_PARAMETER, PLIANT_FLOAT32, kFeatures, weights);
  Register("model.bias", PLIANT_PARAMETER, PLIANT_FLOAT32, 1, bias);
  Register("model.running_mean", PLIANT_BUFFER, PLIANT_FLOAT32, 1, running_mean);
  Register("optimizer.momentum", PLIANT_STATE, PLIANT_FLOAT32, kFeatures + 1, momentum);
  Register("optimizer.updates", PLIANT_STATE, PLIANT_INT64, 1, &updates);
  Check(pliant_start(learner), "start");

  const uint64_t fail_at_step = Number("TOY_FAIL_AT_STEP", UINT64_MAX);
  for (;;) {
    pliant_work work = {.struct_size = sizeof work};
    Check(pliant_next(learner, -1, &work), "next");
    switch (work.kind) {
      case PLIANT_TRAIN:
        if (work.step == fail_at_step) {
          Check(pliant_fail(learner, 1, "told to fail"), "fail");
          break;
        }
        /* fall through */
      case PLIANT_EVALUATE:
        Compute(&work, work.kind == PLIANT_TRAIN);
        break;
      case PLIANT_COMMIT:
        Commit(&work);
        break;
      case PLIANT_LOADED:
        Check(pliant_loaded(learner), "loaded");
        break;
      default: {
        pliant_end end = {.struct_size = sizeof end};
        Check(pliant_get_end(learner, &end), "end");
        pliant_close(learner);
        return end.exit_code;
      }
    }
  }
}
