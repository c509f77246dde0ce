#pragma once

#include <istream>
#include <string>

#include "base/result.h"

namespace pliant::replay {

// The text of a file; "-": of `in`, the standard input. Of a text that is too long for a snapshot
// it returns one byte more than is accepted, so that the reader of the text refuses it.
Result<std::string> ReadInput(const std::string& file, std::istream& in);

// Its name in errors.
std::string ShownInput(const std::string& file);

}  // namespace pliant::replay
