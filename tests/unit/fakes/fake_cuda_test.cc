// The stand-in misbehaves as CUDA may, and finds what CUDA does not find. What it has in common
// with NVIDIA's driver is tested with both: see driver_conformance_test.cc.

#include "tests/fakes/cuda/fake_cuda.h"

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/cuda/cuda_api.h"

namespace pliant::fake_cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Numbers = std::array<int, 4>;

constexpr unsigned kNonBlocking = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kEcc = 214;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;

class FakeCudaTest : public testing::Test {
 protected:
  FakeCudaTest() { Begin(/*seed=*/1); }
  ~FakeCudaTest() override { End(); }

  // A new process with a context.
  void Begin(std::uint64_t seed, int devices = 1) {
    FakeCudaReset(seed, devices);
    void* context = nullptr;
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    EXPECT_EQ(cuCtxPushCurrent_v2(context), 0);
  }
  void End() {
    void* popped = nullptr;
    cuCtxPopCurrent_v2(&popped);
  }

  static CUdeviceptr Device(std::size_t bytes = sizeof(Numbers)) {
    CUdeviceptr at = 0;
    EXPECT_EQ(cuMemAlloc_v2(&at, bytes), 0);
    return at;
  }
  static Numbers* Pinned() {
    void* memory = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&memory, sizeof(Numbers), 0), 0);
    return static_cast<Numbers*>(memory);
  }
  static void* Stream(unsigned flags = kNonBlocking) {
    void* stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, flags), 0);
    return stream;
  }
  static void* Event() {
    void* event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, 0), 0);
    return event;
  }
  static std::vector<std::string> Violations() {
    std::vector<std::string> all;
    for (int i = 0; FakeCudaViolation(i) != nullptr; ++i) all.emplace_back(FakeCudaViolation(i));
    return all;
  }
  // Writes to device memory on one stream, and reads it on another.
  static void WriteThenRead(CUdeviceptr memory, void* writer, void* reader, void* event) {
    EXPECT_EQ(cuMemsetD8Async(memory, 1, sizeof(Numbers), writer), 0);
    if (event != nullptr) {
      EXPECT_EQ(cuEventRecord(event, writer), 0);
      EXPECT_EQ(cuStreamWaitEvent(reader, event, 0), 0);
    }
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(Pinned(), memory, sizeof(Numbers), reader), 0);
  }
};

TEST_F(FakeCudaTest, AForgottenEventIsFoundWhateverTheOrderThatChanceGave) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    End();
    Begin(seed);
    void* const writer = Stream();
    void* const reader = Stream();
    WriteThenRead(Device(), writer, reader, nullptr);
    EXPECT_EQ(cuCtxSynchronize(), 0);
    ASSERT_EQ(Violations().size(), 1U);
    EXPECT_THAT(Violations()[0],
                AllOf(HasSubstr("a copy to the host (operation 1 of stream 2) reads"),
                      HasSubstr("a fill (operation 1 of stream 1) writes")));
  }
}

TEST_F(FakeCudaTest, OrderedStreamsDoNotRace) {
  struct Way {
    const char* what;
    std::function<void(CUdeviceptr)> run;
  };
  const auto wait_in_between = [](auto wait) {
    return [wait](CUdeviceptr memory) {
      void* const writer = Stream();
      cuMemsetD8Async(memory, 1, sizeof(Numbers), writer);
      wait(writer);
      cuMemcpyDtoHAsync_v2(Pinned(), memory, sizeof(Numbers), Stream());
    };
  };
  for (const Way& way : {
           Way{"one stream",
               [](CUdeviceptr memory) {
                 void* const both = Stream();
                 WriteThenRead(memory, both, both, nullptr);
               }},
           Way{"an event",
               [](CUdeviceptr memory) { WriteThenRead(memory, Stream(), Stream(), Event()); }},
           Way{"the legacy stream waits for blocking ones",
               [](CUdeviceptr memory) { WriteThenRead(memory, Stream(0), nullptr, nullptr); }},
           Way{"blocking ones wait for the legacy stream",
               [](CUdeviceptr memory) { WriteThenRead(memory, nullptr, Stream(0), nullptr); }},
           Way{"the host waits for the stream",
               wait_in_between([](void* writer) { cuStreamSynchronize(writer); })},
           Way{"the host waits for all", wait_in_between([](void*) { cuCtxSynchronize(); })},
           Way{"the host polls an event", wait_in_between([](void* writer) {
                 void* const event = Event();
                 cuEventRecord(event, writer);
                 while (cuEventQuery(event) == kNotReady) {
                 }
               })},
       }) {
    SCOPED_TRACE(way.what);
    End();
    Begin(3);
    way.run(Device());
    EXPECT_EQ(cuCtxSynchronize(), 0);
    EXPECT_THAT(Violations(), testing::IsEmpty());
  }
}

TEST_F(FakeCudaTest, NonBlockingStreamsAndTheLegacyStreamDoNotWaitForEachOther) {
  WriteThenRead(Device(), Stream(), nullptr, nullptr);
  EXPECT_EQ(Violations().size(), 1U);
}

TEST_F(FakeCudaTest, AnEventMeansItsLastRecord) {
  const CUdeviceptr memory = Device();
  void* const event = Event();
  void* const writer = Stream();
  EXPECT_EQ(cuEventRecord(event, writer), 0);
  // The record was before the write, so waiting for it orders nothing.
  cuMemsetD8Async(memory, 1, sizeof(Numbers), writer);
  void* const reader = Stream();
  EXPECT_EQ(cuStreamWaitEvent(reader, event, 0), 0);
  cuMemcpyDtoHAsync_v2(Pinned(), memory, sizeof(Numbers), reader);
  EXPECT_EQ(Violations().size(), 1U);
}

TEST_F(FakeCudaTest, MemoryIsPoisonAndItsAddressesAreNoHostsAndNeverUsedTwice) {
  std::set<CUdeviceptr> seen;
  for (int i = 0; i < 100; ++i) {
    const CUdeviceptr at = Device();
    EXPECT_GE(at, CUdeviceptr{1} << 62U);
    EXPECT_TRUE(seen.insert(at).second);
    Numbers read{};
    EXPECT_EQ(cuMemcpyDtoH_v2(&read, at, sizeof read), 0);
    EXPECT_EQ(read[3], static_cast<int>(0xcbcbcbcb));
    EXPECT_EQ(cuMemFree_v2(at), 0);
    EXPECT_NE(cuMemcpyDtoH_v2(&read, at, sizeof read), 0);
  }
  EXPECT_EQ(FakeCudaAllocated(), 0U);
}

TEST_F(FakeCudaTest, PinnedMemoryIsReadWhenTheCopyRuns) {
  Begin(/*seed=*/0);  // operations run as late as possible
  const CUdeviceptr memory = Device();
  Numbers* const pinned = Pinned();
  *pinned = {1, 2, 3, 4};
  cuMemcpyHtoDAsync_v2(memory, pinned, sizeof *pinned, Stream());
  *pinned = {5, 6, 7, 8};  // too early
  cuCtxSynchronize();
  Numbers read{};
  cuMemcpyDtoH_v2(&read, memory, sizeof read);
  EXPECT_EQ(read, (Numbers{5, 6, 7, 8}));
  End();
}

TEST_F(FakeCudaTest, FreeingUnderAQueuedOperationIsAViolation) {
  Begin(/*seed=*/0);
  const CUdeviceptr memory = Device();
  cuMemsetD8Async(memory, 1, sizeof(Numbers), Stream());
  EXPECT_EQ(cuMemFree_v2(memory), 0);
  EXPECT_THAT(Violations(), testing::ElementsAre(HasSubstr("freed")));
  EXPECT_EQ(cuCtxSynchronize(), kIllegalAddress);
  End();
}

TEST_F(FakeCudaTest, AnErrorOfAnOperationStays) {
  const CUdeviceptr memory = Device();
  FakeCudaFailAfter(1, kEcc);
  void* const stream = Stream();
  EXPECT_EQ(cuMemsetD8Async(memory, 1, sizeof(Numbers), stream), 0);
  EXPECT_EQ(cuStreamSynchronize(stream), 0);
  cuMemsetD8Async(memory, 2, sizeof(Numbers), stream);
  EXPECT_EQ(cuStreamSynchronize(stream), kEcc);
  CUdeviceptr another = 0;
  EXPECT_EQ(cuMemAlloc_v2(&another, 16), kEcc);
  FakeCudaFailAfter(-1, 0);
  EXPECT_EQ(cuMemAlloc_v2(&another, 16), 0);
}

TEST_F(FakeCudaTest, MemoryEndsAndComesBack) {
  FakeCudaLimitMemory(100);
  const CUdeviceptr first = Device(60);
  CUdeviceptr second = 0;
  EXPECT_EQ(cuMemAlloc_v2(&second, 60), kOutOfMemory);
  EXPECT_EQ(cuMemFree_v2(first), 0);
  EXPECT_EQ(cuMemAlloc_v2(&second, 60), 0);
}

TEST_F(FakeCudaTest, WaitsOfTheHostAreCounted) {
  const CUdeviceptr memory = Device();
  void* const stream = Stream();
  void* const event = Event();
  const int before = FakeCudaHostWaits();
  cuMemsetD8Async(memory, 1, sizeof(Numbers), stream);
  cuMemcpyDtoHAsync_v2(Pinned(), memory, sizeof(Numbers), stream);
  cuEventRecord(event, stream);
  while (cuEventQuery(event) == kNotReady) {
  }
  EXPECT_EQ(FakeCudaHostWaits(), before);
  Numbers pageable{};
  cuMemcpyDtoHAsync_v2(&pageable, memory, sizeof(Numbers), stream);
  EXPECT_EQ(FakeCudaHostWaits(), before + 1) << "a copy to pageable memory is no asynchronous one";
  cuMemcpyDtoH_v2(Pinned(), memory, sizeof(Numbers));
  cuStreamSynchronize(stream);
  cuEventSynchronize(event);
  cuCtxSynchronize();
  EXPECT_EQ(FakeCudaHostWaits(), before + 5);
}

TEST_F(FakeCudaTest, AStreamThatHangsHoldsUpWhoWaitsForItOnly) {
  const CUdeviceptr memory = Device();
  void* const hung = Stream();
  void* const other = Stream();
  FakeCudaHang(hung, true);
  cuMemsetD8Async(memory, 1, sizeof(Numbers), hung);
  EXPECT_EQ(cuMemsetD8Async(Device(), 1, sizeof(Numbers), other), 0);
  EXPECT_EQ(cuStreamSynchronize(other), 0);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(cuStreamQuery(hung), kNotReady);
  std::thread releases([&] {
    void* context = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent_v2(context);
    FakeCudaHang(hung, false);
  });
  EXPECT_EQ(cuStreamSynchronize(hung), 0);
  releases.join();
}

TEST_F(FakeCudaTest, OneSeedGivesOneOrderAndSeedsDiffer) {
  const auto order = [&](std::uint64_t seed) {
    End();
    Begin(seed);
    std::string ran;
    Kernel kernel{.name = "note",
                  .parameter_sizes = {sizeof(char)},
                  .touches = [](auto...) { return std::vector<Access>(); },
                  .run = [&](void* const* parameters,
                             auto...) { ran += *static_cast<const char*>(parameters[0]); }};
    FakeCudaAddKernel(&kernel);
    constexpr std::uint32_t kImage = 0x464c457f;
    void* module = nullptr;
    void* function = nullptr;
    EXPECT_EQ(cuModuleLoadData(&module, &kImage), 0);
    EXPECT_EQ(cuModuleGetFunction(&function, module, "note"), 0);
    for (char name = 'a'; name < 'e'; ++name) {
      void* const stream = Stream();
      for (int i = 0; i < 3; ++i) {
        void* parameters[] = {&name};
        EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr), 0);
      }
    }
    EXPECT_EQ(cuCtxSynchronize(), 0);
    return ran;
  };
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::string first = order(seed);
    EXPECT_EQ(first.size(), 12U);
    EXPECT_EQ(order(seed), first);
    orders.insert(first);
  }
  EXPECT_GT(orders.size(), 5U);
}

TEST_F(FakeCudaTest, AKernelThatTouchesFreedMemoryBreaksTheContext) {
  const CUdeviceptr memory = Device();
  Kernel kernel{
      .name = "fill",
      .parameter_sizes = {sizeof(CUdeviceptr)},
      .touches =
          [](void* const* parameters, auto...) {
            return std::vector<Access>{{.begin = *static_cast<const CUdeviceptr*>(parameters[0]),
                                        .bytes = 16,
                                        .writes = true}};
          },
      .run = [](auto...) { FAIL() << "it must not run"; }};
  FakeCudaAddKernel(&kernel);
  constexpr std::uint32_t kImage = 0x464c457f;
  void* module = nullptr;
  void* function = nullptr;
  cuModuleLoadData(&module, &kImage);
  EXPECT_NE(cuModuleGetFunction(&function, module, "another"), 0);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "fill"), 0);
  cuMemFree_v2(memory);
  CUdeviceptr parameter = memory;
  void* parameters[] = {&parameter};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), 0);
  EXPECT_EQ(cuCtxSynchronize(), kIllegalAddress);
}

TEST_F(FakeCudaTest, AnotherContainersMemoryIsNotImported) {
  const CUmemAllocationProp what{
      .type = 1, .requestedHandleTypes = 1, .location = {.type = 1, .id = 0}};
  std::uint64_t handle = 0;
  ASSERT_EQ(cuMemCreate(&handle, 2 << 20, &what, 0), 0);
  int fd = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&fd, handle, 1, 0), 0);
  FakeCudaIsolate(true);
  std::uint64_t imported = 0;
  EXPECT_EQ(cuMemImportFromShareableHandle(
                &imported, reinterpret_cast<void*>(static_cast<std::uintptr_t>(fd)), 1),
            kInvalidDevice);
}

}  // namespace
}  // namespace pliant::fake_cuda
