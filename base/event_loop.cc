#include "base/event_loop.h"

namespace pliant {

double ToSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace pliant
