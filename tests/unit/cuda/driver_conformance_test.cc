// These tests state what the library relies on in NVIDIA's driver. The stand-in and a real one pass
// them. tests.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cuda/program_driver.h"
#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/cuda_kernels.h"
#include "trainer/cuda/kernel_image.h"

namespace pliant {
namespace {

constexpr int kOutOfMemory = 2;
constexpr int kInvalidContext = 201;
constexpr int kNotFound = 500;
constexpr int kAlreadyRegistered = 712;
constexpr int kNotRegistered = 713;
constexpr int kMemoryType = 2;
constexpr int kDevice = 9;
constexpr std::size_t kBytes = std::size_t{4} << 20U;

class DriverConformanceTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    control_ = ProgramDriver::Find(why);
    if (control_ == nullptr) GTEST_SKIP() << why;
    if (control_->is_fake()) control_->Restart(3);
    driver_ = *CudaDriver::Open();
    ASSERT_EQ(driver_->device_get(&device_, 0), 0);
    ASSERT_EQ(driver_->primary_context_retain(&context_, device_), 0);
    current_ = std::make_unique<CurrentCudaContext>(*driver_, context_);
    ASSERT_EQ(driver_->stream_create(&stream_, kCudaNonBlockingStream), 0);
    ASSERT_EQ(driver_->stream_create(&other_, kCudaNonBlockingStream), 0);
    ASSERT_EQ(driver_->event_create(&event_, kCudaEventWithoutTime), 0);
    ASSERT_EQ(driver_->alloc(&memory_, kBytes), 0);
    void* pinned = nullptr;
    ASSERT_EQ(driver_->host_alloc(&pinned, kBytes, kCudaHostPortable), 0);
    pinned_ = static_cast<std::byte*>(pinned);
  }
  void TearDown() override {
    if (!current_) return;
    EXPECT_EQ(driver_->context_synchronize(), 0);
    EXPECT_EQ(driver_->free(memory_), 0);
    EXPECT_EQ(driver_->host_free(pinned_), 0);
    EXPECT_EQ(driver_->event_destroy(event_), 0);
    EXPECT_EQ(driver_->stream_destroy(stream_), 0);
    EXPECT_EQ(driver_->stream_destroy(other_), 0);
    current_.reset();
    if (control_->is_fake()) {
      EXPECT_EQ(control_->Violation(), "");
    }
  }

  void Await(CudaEvent event) {
    while (driver_->event_query(event) == kCudaNotReady)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    EXPECT_EQ(driver_->event_query(event), 0);
  }

  const ProgramDriver* control_ = nullptr;
  std::shared_ptr<const CudaDriver> driver_;
  int device_ = 0;
  CudaContext context_ = nullptr;
  std::unique_ptr<CurrentCudaContext> current_;
  CudaStream stream_ = nullptr;
  CudaStream other_ = nullptr;
  CudaEvent event_ = nullptr;
  CudaPointer memory_ = 0;
  std::byte* pinned_ = nullptr;
};

TEST_F(DriverConformanceTest, AStreamKeepsItsOrder) {
  for (unsigned char value = 1; value < 50; ++value)
    ASSERT_EQ(driver_->fill(memory_, value, kBytes, stream_), 0);
  ASSERT_EQ(driver_->copy_to_host(pinned_, memory_, kBytes, stream_), 0);
  ASSERT_EQ(driver_->event_record(event_, stream_), 0);
  Await(event_);
  EXPECT_EQ(pinned_[0], std::byte{49});
  EXPECT_EQ(pinned_[kBytes - 1], std::byte{49});
}

TEST_F(DriverConformanceTest, AStreamWaitsForAnEventOfAnother) {
  for (unsigned char value = 1; value < 50; ++value)
    ASSERT_EQ(driver_->fill(memory_, value, kBytes, stream_), 0);
  ASSERT_EQ(driver_->event_record(event_, stream_), 0);
  ASSERT_EQ(driver_->stream_wait_event(other_, event_, 0), 0);
  ASSERT_EQ(driver_->copy_to_host(pinned_, memory_, kBytes, other_), 0);
  ASSERT_EQ(driver_->stream_synchronize(other_), 0);
  EXPECT_EQ(pinned_[kBytes - 1], std::byte{49});
}

TEST_F(DriverConformanceTest, AnEventIsWhatItWasAtItsLastRecord) {
  EXPECT_EQ(driver_->event_query(event_), 0) << "it was never recorded";
  EXPECT_EQ(driver_->stream_wait_event(stream_, event_, 0), 0);
  ASSERT_EQ(driver_->fill(memory_, 1, kBytes, stream_), 0);
  ASSERT_EQ(driver_->event_record(event_, stream_), 0);
  ASSERT_EQ(driver_->fill(memory_, 2, kBytes, stream_), 0);
  ASSERT_EQ(driver_->event_record(event_, stream_), 0);
  ASSERT_EQ(driver_->stream_wait_event(other_, event_, 0), 0);
  ASSERT_EQ(driver_->copy_to_host(pinned_, memory_, kBytes, other_), 0);
  ASSERT_EQ(driver_->stream_synchronize(other_), 0);
  EXPECT_EQ(pinned_[0], std::byte{2});
}

TEST_F(DriverConformanceTest, CopiesWithinTheDeviceAndToIt) {
  CudaPointer second = 0;
  ASSERT_EQ(driver_->alloc(&second, kBytes), 0);
  std::memset(pinned_, 7, kBytes);
  ASSERT_EQ(driver_->copy_to_device(memory_, pinned_, kBytes, stream_), 0);
  ASSERT_EQ(driver_->copy_within(second, memory_, kBytes, stream_), 0);
  ASSERT_EQ(driver_->stream_synchronize(stream_), 0);
  std::memset(pinned_, 0, kBytes);
  ASSERT_EQ(driver_->copy_to_host(pinned_, second, kBytes, stream_), 0);
  ASSERT_EQ(driver_->stream_synchronize(stream_), 0);
  EXPECT_EQ(pinned_[kBytes - 1], std::byte{7});
  EXPECT_EQ(driver_->free(second), 0);
}

// The library uses its own memory again after such a call, and so does the program.
TEST_F(DriverConformanceTest, PageableMemoryMayChangeAfterTheCall) {
  std::vector<std::byte> pageable(1000, std::byte{5});
  ASSERT_EQ(driver_->copy_to_device(memory_, pageable.data(), pageable.size(), stream_), 0);
  pageable.assign(pageable.size(), std::byte{6});
  ASSERT_EQ(driver_->copy_to_host(pinned_, memory_, pageable.size(), stream_), 0);
  ASSERT_EQ(driver_->stream_synchronize(stream_), 0);
  EXPECT_EQ(pinned_[999], std::byte{5});
}

TEST_F(DriverConformanceTest, PointersTellWhereTheyAre) {
  std::uint32_t type = 0;
  ASSERT_EQ(driver_->pointer_get_attribute(&type, kMemoryType, memory_ + 100), 0);
  EXPECT_EQ(type, 2U);
  int ordinal = -1;
  ASSERT_EQ(driver_->pointer_get_attribute(&ordinal, kDevice, memory_), 0);
  EXPECT_EQ(ordinal, 0);
  ASSERT_EQ(driver_->pointer_get_attribute(&type, kMemoryType, CudaAddress(pinned_)), 0);
  EXPECT_EQ(type, 1U);
  const int on_stack = 0;
  EXPECT_EQ(driver_->pointer_get_attribute(&type, kMemoryType, CudaAddress(&on_stack)),
            kCudaInvalidValue);
}

TEST_F(DriverConformanceTest, MemoryIsRegisteredOnce) {
  constexpr std::size_t kPage = 4096;
  const std::unique_ptr<void, void (*)(void*)> pages(std::aligned_alloc(kPage, 4 * kPage),
                                                     std::free);
  ASSERT_EQ(driver_->host_register(pages.get(), 4 * kPage, kCudaHostPortable), 0);
  EXPECT_EQ(driver_->host_register(pages.get(), 4 * kPage, kCudaHostPortable), kAlreadyRegistered);
  ASSERT_EQ(driver_->fill(memory_, 9, 4 * kPage, stream_), 0);
  ASSERT_EQ(driver_->copy_to_host(pages.get(), memory_, 4 * kPage, stream_), 0);
  ASSERT_EQ(driver_->stream_synchronize(stream_), 0);
  EXPECT_EQ(static_cast<std::byte*>(pages.get())[4 * kPage - 1], std::byte{9});
  EXPECT_EQ(driver_->host_unregister(pages.get()), 0);
  EXPECT_EQ(driver_->host_unregister(pages.get()), kNotRegistered);
}

TEST_F(DriverConformanceTest, ALackOfMemoryBreaksNothing) {
  CudaPointer much = 0;
  EXPECT_EQ(driver_->alloc(&much, std::size_t{1} << 50U), kOutOfMemory);
  EXPECT_EQ(driver_->fill(memory_, 1, kBytes, stream_), 0);
  EXPECT_EQ(driver_->stream_synchronize(stream_), 0);
}

TEST_F(DriverConformanceTest, AContextIsThatOfAThread) {
  int without = 0;
  std::thread([&] {
    CudaPointer memory = 0;
    without = driver_->alloc(&memory, 16);
  }).join();
  EXPECT_EQ(without, kInvalidContext);
}

TEST_F(DriverConformanceTest, AKernelThatIsMissingIsNotFound) {
  int major = 0;
  int minor = 0;
  ASSERT_EQ(driver_->device_get_attribute(&major, 75, device_), 0);
  ASSERT_EQ(driver_->device_get_attribute(&minor, 76, device_), 0);
  const std::span<const std::byte> image = cuda::KernelImage(major, minor);
  if (image.empty()) GTEST_SKIP() << "a build without kernels";
  void* module = nullptr;
  ASSERT_EQ(driver_->module_load_data(&module, image.data()), 0);
  void* function = nullptr;
  EXPECT_EQ(driver_->module_get_function(&function, module, "pliant_squares"), 0);
  EXPECT_EQ(driver_->module_get_function(&function, module, "pliant_unknown"), kNotFound);
  EXPECT_EQ(driver_->module_unload(module), 0);
  const std::array<std::byte, 64> wrong{};
  EXPECT_NE(driver_->module_load_data(&module, wrong.data()), 0);
}

}  // namespace
}  // namespace pliant
