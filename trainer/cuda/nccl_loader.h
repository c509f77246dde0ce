#pragma once

#include <string>

#include "base/result.h"

namespace pliant {

// NCCL, loaded at run time: a learner without GPUs does not need it, and one program works with
// every version that its image provides. No code of ours is linked with it.
class NcclLibrary {
 public:
  // kNotFound when it is not installed, kInvalid when it is older than required; both messages say
  // what to do. `path`: a library name for the dynamic linker, or a file.
  static Result<NcclLibrary> Load(const std::string& path = "libnccl.so.2");

  int version() const { return version_; }  // 22809: 2.28.9
  // The function `name`, with the type that the caller states (see nccl_functions.h). kInvalid when
  // this version does not have it.
  template <typename Function>
  Result<Function*> Find(const char* name) const {
    ASSIGN_OR_RETURN(void* const symbol, FindSymbol(name));
    return reinterpret_cast<Function*>(symbol);
  }

 private:
  NcclLibrary() = default;
  Result<void*> FindSymbol(const char* name) const;

  void* handle_ = nullptr;  // never closed
  int version_ = 0;
};

// "2.28.9"
std::string NcclVersionText(int version);

}  // namespace pliant
