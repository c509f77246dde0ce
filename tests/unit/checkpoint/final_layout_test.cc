#include "trainer/checkpoint/final_layout.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "tests/unit/checkpoint/training_state.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/memory_store.h"

namespace pliant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Tensors of the model, of one byte for each letter of their name.
class Model {
 public:
  explicit Model(const std::vector<std::string>& names) : names_(names) {
    for (std::string& name : names_) {
      state_.push_back({.name = "model." + name,
                        .dtype = DType::kUInt8,
                        .shape = {std::ssize(name)},
                        .bytes = std::as_writable_bytes(std::span(name))});
    }
  }
  const StateDict& state() const { return state_; }

 private:
  std::vector<std::string> names_;
  StateDict state_;
};

std::vector<std::string> NamesOf(const std::vector<TensorFile>& files) {
  std::vector<std::string> names;
  for (const TensorFile& file : files) {
    std::string of = file.name + ":";
    for (const TensorView& tensor : file.tensors) of += " " + tensor.name;
    names.push_back(of);
  }
  return names;
}

TEST(FinalLayout, ALargeModelHasSeveralFilesAndAnIndex) {
  const Model model({"aaa", "bbb", "cccccc", "d"});
  const FinalLayout layout{.file_bytes = 6, .texts = {{"config.json", "{}"}}};
  const auto files = FinalFiles(FinalModelOf(model.state(), layout, {}), layout);
  EXPECT_THAT(NamesOf(files), ElementsAre("model-00001-of-00003.safetensors: aaa bbb",
                                          "model-00002-of-00003.safetensors: cccccc",
                                          "model-00003-of-00003.safetensors: d",
                                          "model.safetensors.index.json:", "config.json:"));
  EXPECT_EQ(files[3].header, R"({
  "metadata": {
    "total_size": 13
  },
  "weight_map": {
    "aaa": "model-00001-of-00003.safetensors",
    "bbb": "model-00001-of-00003.safetensors",
    "cccccc": "model-00002-of-00003.safetensors",
    "d": "model-00003-of-00003.safetensors"
  }
}
)");
  EXPECT_EQ(files[4].header, "{}");
}

TEST(FinalLayout, ATensorThatIsTooLargeHasAFileOfItsOwn) {
  const Model model({"a", "bbbbbbbb", "c"});
  const FinalLayout layout{.file_bytes = 4};
  EXPECT_THAT(NamesOf(FinalFiles(model.state(), layout)),
              ElementsAre("model-00001-of-00003.safetensors: a",
                          "model-00002-of-00003.safetensors: bbbbbbbb",
                          "model-00003-of-00003.safetensors: c", "model.safetensors.index.json:"));
}

TEST(FinalLayout, NamesAreThoseOfTheFrameworkAndTheRestIsApart) {
  const Model model({"base.lora_A.default", "other"});
  const Model home({"base.weight"});
  const FinalLayout some{.stem = "adapter_model",
                         .names = {{{"model.base.lora_A.default", "base.lora_A"}}}};
  EXPECT_THAT(NamesOf(FinalFiles(FinalModelOf(model.state(), some, home.state()), some)),
              ElementsAre("adapter_model.safetensors: base.lora_A", "further.safetensors: other"));
  EXPECT_THAT(NamesOf(FinalFiles(FinalModelOf(model.state(), {}, home.state()), {})),
              ElementsAre("model.safetensors: base.lora_A.default base.weight other"))
      << "with what is at home";
}

TEST(FinalLayout, WrongOnesAreNamed) {
  struct Case {
    FinalLayout layout;
    const char* said;
  };
  const Case cases[] = {
      {{.stem = "../model"}, "\"../model\" cannot name the files"},
      {{.stem = ""}, "\"\" cannot name"},
      {{.file_bytes = 0}, "has no room"},
      {{.texts = {{"manifest.json", ""}}}, "\"manifest.json\" cannot be a file"},
      {{.texts = {{"a/b", ""}}}, "\"a/b\" cannot be a file"},
      {{.texts = {{".hidden", ""}}}, "\".hidden\" cannot be a file"},
      {{.texts = {{"x.safetensors", ""}}}, "cannot be a file"},
      {{.texts = {{"a", ""}, {"a", ""}}}, "two files of the final model are named a"},
      {{.texts = {{"a", std::string((16 << 20) + 1, 'x')}}}, "at most 16777216 are possible"},
      {{.texts = std::vector<FinalLayout::Text>(65)}, "65 text files"},
      {{.names = {{{"model.a", "x"}, {"model.b", "x"}}}}, "two tensors of the final model are"},
      {{.names = {{{"model.a", ""}}}}, "model.a has an empty name"},
  };
  EXPECT_TRUE(CheckFinalLayout({}));
  for (const Case& c : cases) {
    const Status checked = CheckFinalLayout(c.layout);
    ASSERT_FALSE(checked) << c.said;
    EXPECT_THAT(checked.error().message, HasSubstr(c.said));
  }
}

TEST(FinalModel, VerifiesWithItsTexts) {
  MemoryStore store;
  const Model model({"aaa", "bbb"});
  const Model home({"cccc"});
  const FinalLayout layout{.file_bytes = 4, .home = home.state(), .texts = {{"config.json", "{}"}}};
  const auto exported = ExportFinal(store, LabelAt(12), model.state(), layout);
  ASSERT_TRUE(exported) << exported.error();
  const auto stored = FindDirectory(store, kFinalDirectory);
  ASSERT_TRUE(stored);
  const auto read = LoadVerified(store, *stored, *exported);
  ASSERT_TRUE(read) << read.error();
  std::vector<std::string> names;
  for (const TensorView& tensor : read->view()) names.push_back(tensor.name);
  EXPECT_THAT(names, ElementsAre("model.aaa", "model.bbb", "model.cccc"));
  store.objects()["final/config.json"][0] ^= std::byte{1};
  const auto damaged = LoadVerified(store, *stored, *exported);
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().message, HasSubstr("config.json: checksum"));
}

}  // namespace
}  // namespace pliant
