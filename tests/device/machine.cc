#include "tests/device/machine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "trainer/binding/pliant.h"
#include "trainer/collective/float_loops.h"

namespace pliant {

// ---- The host ----

std::int32_t HostMachine::device() const { return PLIANT_CPU; }

float* HostMachine::New(std::span<const float> values) {
  floats_.push_back(std::make_unique<float[]>(values.size()));
  std::ranges::copy(values, floats_.back().get());
  return floats_.back().get();
}

double* HostMachine::NewDoubles(std::size_t count) {
  doubles_.push_back(std::make_unique<double[]>(count));
  return doubles_.back().get();
}

void HostMachine::Axpy(float* out, const float* left, const float* data, float scale,
                       std::size_t elements) {
  std::vector<float> product(elements);
  MultiplyInto(product.data(), data, scale, elements);
  if (left == nullptr) {
    std::ranges::copy(product, out);
  } else {
    AddInto(out, left, product.data(), elements);
  }
}

void HostMachine::Squares(const float* values, std::size_t elements, double* lanes) {
  std::fill_n(lanes, kSquareLanes, 0.0);
  for (std::size_t i = 0; i < elements; ++i) {
    const double value = values[i];
    lanes[i % kSquareLanes] += value * value;
  }
}

std::vector<float> HostMachine::Read(const float* values, std::size_t elements) {
  return {values, values + elements};
}

// ---- A GPU ----

namespace {

void Must(const Status& status) { CHECK(status.has_value(), status.error().message); }

}  // namespace

CudaMachine::CudaMachine(std::shared_ptr<const CudaDriver> driver) : driver_(std::move(driver)) {
  int device = 0;
  Must(driver_->Check(driver_->device_get(&device, 0), "cuDeviceGet"));
  Must(driver_->Check(driver_->primary_context_retain(&context_, device), "the context"));
  const CurrentCudaContext current(*driver_, context_);
  Must(driver_->Check(driver_->stream_create(&stream_, kCudaNonBlockingStream), "a stream"));
  auto kernels = CudaKernels::Load(driver_, device);
  CHECK(kernels.has_value(), kernels.error().message);
  kernels_ = *std::move(kernels);
}

CudaMachine::~CudaMachine() {
  const CurrentCudaContext current(*driver_, context_);
  driver_->stream_synchronize(stream_);
  for (const CudaPointer memory : memory_) driver_->free(memory);
  driver_->stream_destroy(stream_);
  kernels_.reset();
}

std::int32_t CudaMachine::device() const { return PLIANT_CUDA; }

void* CudaMachine::NewMemory(std::span<const std::byte> contents) {
  const CurrentCudaContext current(*driver_, context_);
  CudaPointer memory = 0;
  Must(driver_->Check(driver_->alloc(&memory, contents.size()), "memory"));
  memory_.push_back(memory);
  Must(driver_->Check(driver_->copy_to_device(memory, contents.data(), contents.size(), stream_),
                      "a copy"));
  return reinterpret_cast<void*>(memory);
}

float* CudaMachine::New(std::span<const float> values) {
  return static_cast<float*>(NewMemory(std::as_bytes(values)));
}

double* CudaMachine::NewDoubles(std::size_t count) {
  const std::vector<double> zeros(count);
  return static_cast<double*>(NewMemory(std::as_bytes(std::span(zeros))));
}

void CudaMachine::Axpy(float* out, const float* left, const float* data, float scale,
                       std::size_t elements) {
  const CurrentCudaContext current(*driver_, context_);
  cuda::GatherArguments gather{.count = 1, .scale = scale, .left = left, .out = out};
  gather.data[0] = data;
  gather.size[0] = static_cast<std::uint32_t>(elements);
  Must(kernels_->Gather(CudaKernels::Type::kFloat32, gather, stream_));
  ++launches_;
}

void CudaMachine::Squares(const float* values, std::size_t elements, double* lanes) {
  const CurrentCudaContext current(*driver_, context_);
  cuda::SquaresArguments squares{.count = 1, .lanes = lanes};
  squares.data[0] = values;
  squares.size[0] = static_cast<std::uint32_t>(elements);
  Must(kernels_->Squares(squares, stream_));
  ++launches_;
}

std::vector<float> CudaMachine::Read(const float* values, std::size_t elements) {
  const CurrentCudaContext current(*driver_, context_);
  std::vector<float> read(elements);
  Must(driver_->Check(
      driver_->copy_to_host(read.data(), CudaAddress(values), elements * sizeof(float), stream_),
      "a copy"));
  Must(driver_->Check(driver_->stream_synchronize(stream_), "a copy"));
  return read;
}

}  // namespace pliant
