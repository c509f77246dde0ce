// The parts of a device's gradients that a whole training does not show: errors, and what happens
// without the waits between streams.

#include "trainer/cuda/cuda_gradients.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cuda/program_driver.h"
#include "trainer/collective/buffer_pool.h"

namespace pliant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::size_t kElements = 3000;

class CudaGradientsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    control_ = ProgramDriver::Find(why);
    if (control_ == nullptr) GTEST_SKIP() << why;
    if (control_->is_fake()) control_->Restart(1);
    Make(*CudaDriver::Open());
  }
  void TearDown() override {
    if (control_ != nullptr && control_->is_fake()) control_->FailAfter(-1);
    gradients_.reset();
    if (device_ != nullptr) control_->Free(device_);
  }

  void Make(std::shared_ptr<const CudaDriver> driver) {
    gradients_.reset();
    if (device_ == nullptr) device_ = control_->Allocate(16);
    auto memory = *CudaMemory::Of(std::move(driver), device_);
    ASSERT_TRUE(memory->UseStream(control_->stream()));
    gradients_ = *CudaGradients::Make(std::move(memory), {kElements});
  }

  FloatBuffer OnDevice(float value) {
    FloatBuffer host(kElements);
    std::ranges::fill(host.view(), value);
    FloatBuffer device(kElements, gradients_->memory());
    gradients_->ToDevice(std::as_bytes(host.view()), std::as_writable_bytes(device.view()));
    return device;
  }
  Status Await() {
    std::atomic<bool> over = false;
    Status result;
    gradients_->Then([&](Status done) {
      result = std::move(done);
      over = true;
    });
    while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return result;
  }
  FloatBuffer PinnedBuffer() { return FloatBuffer(kElements, gradients_->pinned_memory()); }
  void ToHost(const FloatBuffer& from, const FloatBuffer& to) {
    gradients_->ToHost(std::as_bytes(from.view()), std::as_writable_bytes(to.view()));
  }

  const ProgramDriver* control_ = nullptr;
  void* device_ = nullptr;
  std::shared_ptr<CudaGradients> gradients_;
};

TEST_F(CudaGradientsTest, AddsFromTheRight) {
  const FloatBuffer sum = OnDevice(1e8F);
  const FloatBuffer middle = OnDevice(3);
  const FloatBuffer right = OnDevice(3);
  gradients_->AddUp(std::vector<std::span<const float>>{sum.view(), middle.view(), right.view()},
                    sum.view());
  const FloatBuffer host = PinnedBuffer();
  ToHost(sum, host);
  ASSERT_TRUE(Await());
  EXPECT_EQ(host.view().front(), 1e8F + (3.0F + 3.0F));
  EXPECT_NE(host.view().front(), (1e8F + 3.0F) + 3.0F);
  gradients_->Zero(sum.view());
  ToHost(sum, host);
  ASSERT_TRUE(Await());
  EXPECT_THAT(host.view(), testing::Each(0.0F));
}

TEST_F(CudaGradientsTest, CallsInOrder) {
  std::mutex mutex;
  std::vector<int> called;
  const FloatBuffer sum = OnDevice(1);
  for (int i = 0; i < 3; ++i) {
    gradients_->Zero(sum.view());
    gradients_->Then([&, i](const Status&) {
      const std::lock_guard lock(mutex);
      called.push_back(i);
    });
  }
  ASSERT_TRUE(Await());
  EXPECT_THAT(called, ElementsAre(0, 1, 2));
}

TEST_F(CudaGradientsTest, AnErrorStays) {
  if (!control_->is_fake()) GTEST_SKIP() << "a real GPU does not fail on request";
  const FloatBuffer sum = OnDevice(1);
  control_->FailAfter(0);
  gradients_->Zero(sum.view());
  EXPECT_THAT(Await().error().message, HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_FALSE(gradients_->Gather(CudaKernels::Type::kFloat32, {}, 1, {}, sum.view()));
  control_->FailAfter(-1);
  EXPECT_FALSE(Await()) << "what was queued after the error is undefined";
}

TEST_F(CudaGradientsTest, MemoryOfTheHostIsRefusedAndChangesNothing) {
  const FloatBuffer sum = OnDevice(1);
  const std::vector<float> host(kElements);
  const CudaGradients::Given given{.data = host.data()};
  EXPECT_EQ(
      gradients_->Gather(CudaKernels::Type::kFloat32, {&given, 1}, 1, {}, sum.view()).error().code,
      ErrorCode::kInvalid);
  EXPECT_EQ(gradients_->Norm(std::vector{host.data()}).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(Await());
}

// A driver whose streams do not wait for each other, as if the library had forgotten it.
int ForgetTheWait(CudaStream, CudaEvent, unsigned) { return kCudaSuccess; }

TEST_F(CudaGradientsTest, AForgottenWaitIsFoundInEveryOrder) {
  if (!control_->is_fake()) GTEST_SKIP() << "only the stand-in looks";
  for (const bool forgets : {false, true}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(seed);
      gradients_.reset();
      device_ = nullptr;
      control_->Restart(seed);
      auto driver = std::make_shared<CudaDriver>(**CudaDriver::Open());
      if (forgets) driver->stream_wait_event = ForgetTheWait;
      Make(driver);
      const FloatBuffer sum = OnDevice(1);
      const FloatBuffer host = PinnedBuffer();
      gradients_->Zero(sum.view());
      ToHost(sum, host);
      gradients_->Drain();
      EXPECT_EQ(control_->Violation() != "", forgets) << control_->Violation();
    }
  }
}

}  // namespace
}  // namespace pliant
