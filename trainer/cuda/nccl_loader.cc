#include "trainer/cuda/nccl_loader.h"

#include <dlfcn.h>

#include "base/format.h"

namespace pliant {
namespace {

// A communicator that does not block is aborted on another thread than the one that launches. In
// earlier versions such an abort can use memory that is gone (ncclGroupJob in group.cc), and before
// 2.23.4 a launch can block the thread that has to ask for the abort.
constexpr int kMinVersion = 22703;

}  // namespace

std::string NcclVersionText(int version) {
  return Format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Result<NcclLibrary> NcclLibrary::Load(const std::string& path) {
  NcclLibrary library;
  // Newer versions have threads of their own: it is never closed.
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* const error = ::dlerror();
    return Fail(ErrorCode::kNotFound,
                Format("NCCL cannot be loaded ({}): install it in the image, or let the learner "
                       "use TCP",
                       error == nullptr ? path : error));
  }
  library.handle_ = handle;
  ASSIGN_OR_RETURN(int (*const get_version)(int*), library.Find<int(int*)>("ncclGetVersion"));
  if (get_version(&library.version_) != 0 || library.version_ < kMinVersion)
    return Invalid(Format("NCCL {} in {} is too old: at least {} is needed",
                          NcclVersionText(library.version_), path, NcclVersionText(kMinVersion)));
  return library;
}

Result<void*> NcclLibrary::FindSymbol(const char* name) const {
  void* const symbol = ::dlsym(handle_, name);
  if (symbol == nullptr)
    return Invalid(Format("NCCL {} has no {}", NcclVersionText(version_), name));
  return symbol;
}

}  // namespace pliant
