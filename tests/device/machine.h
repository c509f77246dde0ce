#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/cuda_kernels.h"

namespace pliant {

// Where a program of tests computes: on a GPU, real or stand-in, or on the host with the same
// operations, to compare the bits. A GPU's memory is an address that the host does not dereference.
class Machine {
 public:
  virtual ~Machine() = default;

  virtual std::int32_t device() const = 0;  // PLIANT_CPU, PLIANT_CUDA
  virtual void* stream() const = 0;
  virtual float* New(std::span<const float> values) = 0;
  virtual double* NewDoubles(std::size_t count) = 0;
  // The rest is only queued.
  // out = left + data · scale, rounded as two operations. `left` may be `out`; nullptr: nothing.
  virtual void Axpy(float* out, const float* left, const float* data, float scale,
                    std::size_t elements) = 0;
  // lanes[0 ... 7] = partial sums of the squares of up to 2,048 values.
  virtual void Squares(const float* values, std::size_t elements, double* lanes) = 0;
  // Waits for all of it.
  virtual std::vector<float> Read(const float* values, std::size_t elements) = 0;
};

class HostMachine final : public Machine {
 public:
  std::int32_t device() const override;
  void* stream() const override { return nullptr; }
  float* New(std::span<const float> values) override;
  double* NewDoubles(std::size_t count) override;
  void Axpy(float* out, const float* left, const float* data, float scale,
            std::size_t elements) override;
  void Squares(const float* values, std::size_t elements, double* lanes) override;
  std::vector<float> Read(const float* values, std::size_t elements) override;

 private:
  std::vector<std::unique_ptr<float[]>> floats_;
  std::vector<std::unique_ptr<double[]>> doubles_;
};

// The first GPU. CHECKs that each call succeeds.
class CudaMachine final : public Machine {
 public:
  explicit CudaMachine(std::shared_ptr<const CudaDriver> driver);
  // Waits for what is queued.
  ~CudaMachine() override;

  std::int32_t device() const override;
  void* stream() const override { return stream_; }
  float* New(std::span<const float> values) override;
  double* NewDoubles(std::size_t count) override;
  void Axpy(float* out, const float* left, const float* data, float scale,
            std::size_t elements) override;
  void Squares(const float* values, std::size_t elements, double* lanes) override;
  std::vector<float> Read(const float* values, std::size_t elements) override;

  int launches() const { return launches_; }

 private:
  void* NewMemory(std::span<const std::byte> contents);

  const std::shared_ptr<const CudaDriver> driver_;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr;
  std::unique_ptr<CudaKernels> kernels_;
  std::vector<CudaPointer> memory_;
  int launches_ = 0;
};

}  // namespace pliant
