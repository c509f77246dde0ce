#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "trainer/membership/types.h"

namespace pliant {

// A folder in which the learners of one machine find each other's sockets: whoever can open it is
// on the machine, and is let in by who may give access to folders.
class ShmRendezvous {
 public:
  static Result<ShmRendezvous> Open(const std::filesystem::path& folder);

  // The same for all who opened this folder on this machine, and for nobody else, also when the
  // folder lies on a network.
  const std::string& tag() const { return tag_; }
  // Where a learner listens.
  std::string PathOf(const LearnerId& learner) const;

 private:
  ShmRendezvous(std::filesystem::path folder, std::string tag);
  std::filesystem::path folder_;
  std::string tag_;
};

}  // namespace pliant
