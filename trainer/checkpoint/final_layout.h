#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trainer/checkpoint/state_dict.h"
#include "trainer/checkpoint/tensor_file.h"

namespace pliant {

// How the final model is written, so that the program's framework reads it.
struct FinalLayout {
  struct Text {
    std::string name;  // of the file
    std::string text;
  };

  // The file is <stem>.safetensors. Several are <stem>-00001-of-00002.safetensors, with
  // <stem>.safetensors.index.json, as Hugging Face's libraries write them.
  std::string stem = "model";
  // A tensor that is larger has a file of its own.
  std::uint64_t file_bytes = 5'000'000'000;
  // The names in the files, by the names in the state. The state's other tensors of the model are
  // in a file of their own, further.safetensors, for learners that come after the end. Absent: all
  // tensors of the model are in the files, without their prefix.
  std::optional<std::map<std::string, std::string>> names = std::nullopt;
  // Tensors of the model that are no part of the training's state, wherever they are. Those without
  // a name are left out.
  StateDict home = {};
  std::vector<Text> texts = {};
};

// kInvalid, with the name: a text's file is none that a program may write, or two tensors get one
// name.
Status CheckFinalLayout(const FinalLayout& layout);

// The tensors of the final model: with the names that they get in the files, behind the prefix of
// the model's tensors. `home`: the layout's, in host memory.
StateDict FinalModelOf(const StateDict& state, const FinalLayout& layout, const StateDict& home);

// The files of the final model, whose tensors are those of FinalModelOf.
std::vector<TensorFile> FinalFiles(const StateDict& model, const FinalLayout& layout);

}  // namespace pliant
