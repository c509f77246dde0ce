#include "trainer/process/fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

constexpr std::string_view kIntel =
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
    "model name\t: Xeon\nstepping\t: 7\nflags\t\t: fpu sse sse4_2 fma avx2 avx512f nx avx\n\n"
    "processor\t: 1\nvendor_id\t: Other\n";

TEST(Fingerprint, DescribesTheCpuByWhatPicksKernels) {
  EXPECT_EQ(DescribeCpu(kIntel), "GenuineIntel 6 85 avx avx2 avx512f fma sse4_2");
  EXPECT_EQ(DescribeCpu("processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd asimdhp sve\n"
                        "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n"),
            "0x41 0xd40 asimd asimdhp sve");
  EXPECT_EQ(DescribeCpu(""), "unknown");
}

TEST(Fingerprint, TheCpuMattersOnlyWhereBitsDo) {
  LearnerEnvironment environment;
  const ProgramInfo info{
      .train_samples = 60, .test_samples = 10, .epochs = 3, .gradient_elements = 41};
  EXPECT_EQ(MakeFingerprint(environment, "libtorch 2.6.0", info, kIntel),
            (Fingerprint{{"bucketBytes", "524288"},
                         {"cpu", "GenuineIntel 6 85 avx avx2 avx512f fma sse4_2"},
                         {"epochs", "3"},
                         {"framework", "libtorch 2.6.0"},
                         {"gradientElements", "41"},
                         {"testSamples", "10"},
                         {"trainSamples", "60"}}));
  environment.reproducibility = Reproducibility::kStatistical;
  environment.test.bucket_bytes = 4096;
  EXPECT_EQ(MakeFingerprint(environment, "libtorch 2.6.0", info, kIntel),
            (Fingerprint{{"bucketBytes", "4096"},
                         {"epochs", "3"},
                         {"framework", "libtorch 2.6.0"},
                         {"gradientElements", "41"},
                         {"testSamples", "10"},
                         {"trainSamples", "60"}}));
}

TEST(Fingerprint, ABaseCountsByItsContent) {
  ProgramInfo info;
  EXPECT_FALSE(MakeFingerprint({}, "torch", info, kIntel).contains("base"));
  info.base = {.sha256 = "0a1b", .name = "gpt2"};
  EXPECT_EQ(MakeFingerprint({}, "torch", info, kIntel).at("base"), "0a1b");
}

TEST(Fingerprint, StepsCountWhereThereAreSome) {
  ProgramInfo info;
  EXPECT_FALSE(MakeFingerprint({}, "torch", info, kIntel).contains("maxSteps"));
  EXPECT_FALSE(MakeFingerprint({}, "torch", info, kIntel).contains("evaluateEvery"));
  info.max_steps = 1000;
  info.evaluate_every = 50;
  EXPECT_EQ(MakeFingerprint({}, "torch", info, kIntel).at("maxSteps"), "1000");
  EXPECT_EQ(MakeFingerprint({}, "torch", info, kIntel).at("evaluateEvery"), "50");
}

}  // namespace
}  // namespace pliant
