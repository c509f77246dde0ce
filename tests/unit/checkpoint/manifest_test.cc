#include "trainer/checkpoint/manifest.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pliant {
namespace {

using ::testing::HasSubstr;

const Manifest kManifest{
    .position = {.step = 1234, .tick = 1300, .epoch = 9, .membership = {.term = 2, .counter = 5}},
    .job = {.seed = 18446744073709551615U,
            .global_batch_size = 256,
            .logical_shards = 32,
            .train_samples = 50000,
            .test_samples = 0},
    .framework = "libtorch 2.6",
    .parameters_sha256 = "abc",
    .files = {{.name = "model-00001-of-00001.safetensors", .bytes = 5000000000, .crc32c = 0x1ab}}};

TEST(Manifest, ComesBackAsItWasWritten) {
  const auto decoded = DecodeManifest(EncodeManifest(kManifest));
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(*decoded, kManifest);
}

TEST(Manifest, HasTheBaseThatIsNoPartOfTheState) {
  Manifest manifest = kManifest;
  manifest.job.base = {.sha256 = "0a1b", .name = "gpt2@607a30d"};
  const auto decoded = DecodeManifest(EncodeManifest(manifest));
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(*decoded, manifest);
}

TEST(Manifest, KeepsTheBitsOfTheNoiseWindow) {
  Manifest manifest = kManifest;
  manifest.position.noise = {.trace = 1.0 / 3, .square = -0x1.fffffffffffffp-1022, .steps = 9.8};
  const std::string json = EncodeManifest(manifest);
  const auto decoded = DecodeManifest(json);
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(*decoded, manifest);
  for (const auto& [from, to] :
       {std::pair(R"("steps": 9.8)", R"("steps": -9.8)"),
        std::pair(R"("steps": 9.8)", R"("steps": null)"), std::pair(R"("steps": 9.8,)", ""),
        std::pair(R"("trace": 0.)", R"("trace": 1e999, "x": 0.)")}) {
    std::string wrong = json;
    const std::size_t at = wrong.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    wrong.replace(at, std::string_view(from).size(), to);
    EXPECT_FALSE(DecodeManifest(wrong)) << to;
  }
}

TEST(Manifest, HasTheBatchesThatHaveChanged) {
  Manifest manifest = kManifest;
  manifest.position.batches = {{.epoch = 3, .doublings = 1}, {.epoch = 5, .doublings = 2}};
  const std::string json = EncodeManifest(manifest);
  const auto decoded = DecodeManifest(json);
  ASSERT_TRUE(decoded) << decoded.error();
  EXPECT_EQ(*decoded, manifest);
  for (const auto& [from, to] :
       {std::pair(R"("batches")", R"("others")"), std::pair(R"("epoch": 3)", R"("epoch": -3)"),
        std::pair(R"("doublings": 2)", R"("doublings": 200)")}) {
    std::string wrong = json;
    const std::size_t at = wrong.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    wrong.replace(at, std::string_view(from).size(), to);
    EXPECT_FALSE(DecodeManifest(wrong)) << to;
  }
}

TEST(Manifest, SaysHowOftenItEvaluatesIfByStepsOnly) {
  EXPECT_FALSE(EncodeManifest(kManifest).contains("evaluateEvery"));
  Manifest manifest = kManifest;
  manifest.position.evaluate_every = 500;
  std::string json = EncodeManifest(manifest);
  EXPECT_EQ(*DecodeManifest(json), manifest);
  json.replace(json.find("500"), 3, "-50");
  EXPECT_FALSE(DecodeManifest(json));
}

TEST(Manifest, IsWhatTheContractSays) {
  const std::string json = EncodeManifest(kManifest);
  for (const char* const part :
       {R"("format": 1)", R"("complete": true)", R"("step": 1234)", R"("tick": 1300)",
        R"("epoch": 9)", R"("membership": "2.5")", R"("seed": 18446744073709551615)",
        R"("globalBatchSize": 256)", R"("logicalShards": 32)", R"("trainSamples": 50000)",
        R"("testSamples": 0)", R"("framework": "libtorch 2.6")", R"("parametersSha256": "abc")",
        R"("noise": {)", R"("batches": [])", R"("name": "model-00001-of-00001.safetensors")",
        R"("bytes": 5000000000)", R"("crc32c": "000001ab")"})
    EXPECT_THAT(json, HasSubstr(part));
}

TEST(Manifest, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string from;
    std::string to;
    std::string named;
  };
  const Case cases[] = {
      {R"("format": 1)", R"("format": 2)", "format 2"},
      {R"("format": 1)", R"("format": 0)", "format 0"},
      {R"("batches")", R"("others")", "batches"},
      {R"("noise")", R"("others")", "noise"},
      {R"("base")", R"("others")", "base"},
      {R"("base": null)", R"("base": "gpt2")", "base"},
      {R"("base": null)", R"("base": {"name": "gpt2"})", "sha256"},
      {R"("base": null)", R"("base": {"sha256": "", "name": ""})", "base.sha256"},
      {R"("trainSamples")", R"("others")", "trainSamples"},
      {R"("testSamples")", R"("others")", "testSamples"},
      {R"("complete": true)", R"("complete": false)", "complete"},
      {R"("complete": true,)", "", "complete"},
      {R"("step": 1234)", R"("step": -1)", "step"},
      {R"("tick": 1300)", R"("tick": "1300")", "tick"},
      {R"("membership": "2.5")", R"("membership": "2.5x")", "membership"},
      {R"("membership": "2.5")", R"("membership": "2")", "membership"},
      {R"("logicalShards": 32)", R"("logicalShards": 4294967328)", "logicalShards"},
      {R"("trainSamples": 50000)", R"("trainSamples": "all")", "trainSamples"},
      {R"("testSamples": 0)", R"("testSamples": null)", "testSamples"},
      {R"("name": "model)", R"("name": "../model)", "files.name"},
      {R"("name": "model)", R"("name": "a/model)", "files.name"},
      {R"("crc32c": "000001ab")", R"("crc32c": "1ab")", "files.crc32c"},
      {R"("crc32c": "000001ab")", R"("crc32c": "000001ag")", "files.crc32c"},
      {"{", "[", "JSON"},
  };
  for (const Case& c : cases) {
    std::string json = EncodeManifest(kManifest);
    const std::size_t at = json.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    json.replace(at, c.from.size(), c.to);
    const auto decoded = DecodeManifest(json);
    ASSERT_FALSE(decoded) << c.to;
    EXPECT_EQ(decoded.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(decoded.error().message, HasSubstr(c.named));
  }
}

TEST(Manifest, IsNotNestedDeep) {
  const std::string json = EncodeManifest(kManifest);
  const auto with_extra = [&](std::size_t levels) {
    return R"({"extra": )" + std::string(levels, '[') + std::string(levels, ']') + "," +
           json.substr(1);
  };
  EXPECT_TRUE(DecodeManifest(with_extra(99)));
  EXPECT_FALSE(DecodeManifest(with_extra(100)));
}

TEST(Manifest, DoesNotNameAFileTwice) {
  Manifest twice = kManifest;
  twice.files.push_back(twice.files.front());
  EXPECT_FALSE(DecodeManifest(EncodeManifest(twice)));
}

TEST(Manifest, APrefixIsNoManifest) {
  const std::string json = EncodeManifest(kManifest);
  for (std::size_t size = 0; size + 2 < json.size(); ++size)
    EXPECT_FALSE(DecodeManifest(json.substr(0, size)));
}

}  // namespace
}  // namespace pliant
