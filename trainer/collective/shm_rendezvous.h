#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "trainer/membership/types.h"

namespace pliant {

// A folder in which the learners of one machine find each other's sockets. A process that can open
// it runs on this machine and was given access to the folder.
class ShmRendezvous {
 public:
  static Result<ShmRendezvous> Open(const std::filesystem::path& folder);

  // The same for all processes that opened this folder on this machine, and for no others, even if
  // the folder is on a network.
  const std::string& tag() const { return tag_; }
  // The socket on which a learner listens.
  std::string PathOf(const LearnerId& learner) const;

 private:
  ShmRendezvous(std::filesystem::path folder, std::string tag);
  std::filesystem::path folder_;
  std::string tag_;
};

}  // namespace pliant
