#pragma once

#include <string>

#include "simulator/report/report.h"

namespace pliant::simulator {

// A page on its own: no script, font or picture is loaded. It is well-formed XML too.
std::string WriteHtml(const Report& report);

}  // namespace pliant::simulator
