#include "trainer/collective/shm_rendezvous.h"

#include <span>
#include <utility>

#include <sys/stat.h>
#include <sys/un.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "base/format.h"

namespace pliant {
namespace {

constexpr std::string_view kSuffix = ".sock";
constexpr std::size_t kMaxName = 64;  // of a socket's name, with the slash

std::string NameOf(const LearnerId& learner) {
  const std::string text = Format("{}/{}/{}", learner.name, learner.pod_uid, learner.local_rank);
  return Format("{:016x}{:08x}", learner.nonce, Crc32c(std::as_bytes(std::span(text))));
}

}  // namespace

ShmRendezvous::ShmRendezvous(std::filesystem::path folder, std::string tag)
    : folder_(std::move(folder)), tag_(std::move(tag)) {}

Result<ShmRendezvous> ShmRendezvous::Open(const std::filesystem::path& folder) {
  const std::size_t most = sizeof(sockaddr_un::sun_path) - kMaxName;
  if (folder.native().size() > most)
    return Invalid(Format("the path '{}' is too long for sockets: use at most {} characters",
                          folder.native(), most));
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return Invalid(Format("'{}' is not a folder", folder.native()));
  ASSIGN_OR_RETURN(std::string boot, ReadFile("/proc/sys/kernel/random/boot_id"));
  boot += Format("{:x}/{:x}", status.st_dev, status.st_ino);
  return ShmRendezvous(folder,
                       Format("{:08x}{:x}", Crc32c(std::as_bytes(std::span(boot))), status.st_ino));
}

std::string ShmRendezvous::PathOf(const LearnerId& learner) const {
  return folder_ / (NameOf(learner) + std::string(kSuffix));
}

}  // namespace pliant
