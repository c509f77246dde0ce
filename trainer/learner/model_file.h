#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trainer/learner/model_spec.h"

namespace pliant::learner {

// Reads and checks a model file (docs/native-learner.md describes it). Errors are
// "file:line:column: what is wrong and what is expected". Data paths are returned as written.
Result<ModelSpec> ReadModelFile(const std::filesystem::path& path);
// The same for a text; errors name it `origin`.
Result<ModelSpec> ParseModel(const std::string& text, std::string_view origin);

}  // namespace pliant::learner
