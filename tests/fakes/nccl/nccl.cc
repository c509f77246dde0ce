// NCCL's interface, over sockets of one machine and the stand-in for CUDA's driver. It refuses what
// NCCL does not allow, and fails as NCCL does. See Faults.

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/nccl/communicator.h"
#include "tests/fakes/nccl/cuda_side.h"

using namespace pliant::fake_nccl;

namespace {

struct UniqueId {
  char internal[128];
};

// One thread at a time makes calls.
class Inside {
 public:
  Inside() {
    if (threads()++ > 0) Report("two threads are in its calls at once");
  }
  ~Inside() { --threads(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  static std::atomic<int>& threads() {
    static std::atomic<int> inside = 0;
    return inside;
  }
};

struct Group {
  int depth = 0;
  Communicator* communicator = nullptr;
  std::vector<Operation> operations;
};

Group& TheGroup() {
  thread_local Group group;
  return group;
}

int SizeOf(int type) { return type == 7 ? 4 : 1; }  // ncclFloat32, ncclInt8

int Give(Communicator* communicator, const Operation& operation, bool fits) {
  const Inside inside;
  if (communicator == nullptr || !fits || operation.bytes == 0) {
    Report("an operation with wrong arguments");
    return kInvalidArgument;
  }
  Group& group = TheGroup();
  if (group.depth == 0) {
    Report("an operation outside of a group");
    return kInvalidUsage;
  }
  if (group.communicator != nullptr && group.communicator != communicator) {
    Report("a group with two communicators");
    return kInvalidUsage;
  }
  group.communicator = communicator;
  group.operations.push_back(operation);
  return kSuccess;
}

bool IsPeer(const Communicator* communicator, int peer) {
  return communicator != nullptr && peer >= 0 && peer < communicator->world_size() &&
         peer != communicator->rank();
}

std::uint64_t Address(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCudaError:
      return "unhandled cuda error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "NCCL operation in progress";
    default:
      return "internal error";
  }
}

int ncclGetUniqueId(UniqueId* id) {
  const Inside inside;
  *id = {};
  std::random_device random;
  std::snprintf(id->internal, sizeof id->internal, "pliant-fake-nccl-%08x%08x", random(), random());
  return kSuccess;
}

int ncclCommInitRankConfig(Communicator** communicator, int ranks, UniqueId id, int rank,
                           const void* config) {
  const Inside inside;
  std::size_t size = 0;
  std::memcpy(&size, config, sizeof size);
  unsigned magic = 0;
  std::memcpy(&magic, static_cast<const char*>(config) + sizeof size, sizeof magic);
  int blocking = 1;
  std::memcpy(&blocking, static_cast<const char*>(config) + 16, sizeof blocking);
  if (magic != 0xcafebeef || size < 40 || blocking != 0 || rank < 0 || rank >= ranks) {
    Report("a communicator with a wrong configuration");
    return kInvalidArgument;
  }
  *communicator = new Communicator(id.internal, rank, ranks, Faults::FromEnvironment());
  return kInProgress;
}

int ncclCommGetAsyncError(Communicator* communicator, int* error) {
  const Inside inside;
  *error = communicator->state();
  return kSuccess;
}

int ncclCommAbort(Communicator* communicator) {
  const Inside inside;
  communicator->Abort();
  delete communicator;
  return kSuccess;
}

int ncclGroupStart() {
  const Inside inside;
  ++TheGroup().depth;
  return kSuccess;
}

int ncclGroupEnd() {
  const Inside inside;
  Group& group = TheGroup();
  if (group.depth == 0) return kInvalidUsage;
  if (--group.depth > 0) return kSuccess;
  const Group ended = std::move(group);
  group = {};
  if (ended.operations.empty()) return kSuccess;
  return ended.communicator->Launch(ended.operations);
}

int ncclSend(const void* from, std::size_t count, int type, int peer, Communicator* communicator,
             void* stream) {
  return Give(communicator,
              {.kind = Operation::Kind::kSend,
               .peer = peer,
               .from = Address(from),
               .bytes = count * static_cast<std::size_t>(SizeOf(type)),
               .stream = stream},
              IsPeer(communicator, peer));
}

int ncclRecv(void* to, std::size_t count, int type, int peer, Communicator* communicator,
             void* stream) {
  return Give(communicator,
              {.kind = Operation::Kind::kReceive,
               .peer = peer,
               .to = Address(to),
               .bytes = count * static_cast<std::size_t>(SizeOf(type)),
               .stream = stream},
              IsPeer(communicator, peer));
}

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int operation,
                  Communicator* communicator, void* stream) {
  return Give(communicator,
              {.kind = Operation::Kind::kAllReduce,
               .from = Address(from),
               .to = Address(to),
               .bytes = count * sizeof(float),
               .stream = stream},
              type == 7 && operation == 0);
}

}  // extern "C"
