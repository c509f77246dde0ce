// Prints the rates of the kernels on this machine's GPU, each with the rate of a copy within the
// device: one line of JSON for each. kernels_bench.py compares them.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/format.h"
#include "trainer/collective/tree.h"
#include "trainer/collective/tree_levels.h"
#include "trainer/collective/tree_sum.h"
#include "trainer/cuda/cuda_driver.h"
#include "trainer/cuda/cuda_kernels.h"

namespace pliant {
namespace {

// As many as a model of 124 million parameters has, rounded up.
constexpr std::size_t kElements = 125'000'000;
constexpr double kBytes = kElements * sizeof(float);

void Must(int result) { CHECK(result == 0, "CUDA error " + std::to_string(result)); }
void Must(const Status& status) { CHECK(status.has_value(), status.error().message); }

class Rates {
 public:
  Rates() {
    const auto driver = CudaDriver::Open();
    CHECK(driver.has_value(), driver.error().message);
    driver_ = *driver;
    int device = 0;
    void* context = nullptr;
    Must(driver_->device_get(&device, 0));
    Must(driver_->primary_context_retain(&context, device));
    Must(driver_->context_push(context));
    auto kernels = CudaKernels::Load(driver_, device);
    CHECK(kernels.has_value(), kernels.error().message);
    kernels_ = *std::move(kernels);
    for (int i = 0; i < 17; ++i) buffers_.push_back(Allocate(kElements));
  }

  void Print() {
    copy_ = RateOf(2 * kBytes, [&] {
      Must(driver_->copy_within(CudaAddress(buffers_[0]), CudaAddress(buffers_[1]),
                                static_cast<std::size_t>(kBytes), nullptr));
    });
    Line("copy within the device", copy_);
    for (const int count : {2, 4, 8, 16}) PrintTree(count, AssignShards(count, count));
    // As three learners have them: the blocks have two sizes.
    PrintTree(6, AssignShards(16, 3));
    auto* const sum = reinterpret_cast<unsigned long long*>(Allocate(2));
    Line("checksum", RateOf(kBytes, [&] {
           Must(kernels_->Checksum({.words = reinterpret_cast<const std::uint64_t*>(buffers_[0]),
                                    .size = static_cast<std::size_t>(kBytes),
                                    .sum = sum},
                                   nullptr));
         }));
    PrintGather("gather of ResNet-18, f32", CudaKernels::Type::kFloat32, 4, ResNet18());
    PrintGather("gather of a transformer of 124 M, f32", CudaKernels::Type::kFloat32, 4, Gpt2());
    PrintGather("gather of a transformer of 124 M, bf16", CudaKernels::Type::kBFloat16, 2, Gpt2());
  }

 private:
  float* Allocate(std::size_t elements) {
    CudaPointer memory = 0;
    Must(driver_->alloc(&memory, elements * sizeof(float)));
    return reinterpret_cast<float*>(memory);
  }

  // GB/s: the median of nine rounds of many launches, after one to warm up.
  double RateOf(double bytes, const std::function<void()>& launch) {
    const int launches = std::max(10, static_cast<int>(5e10 / bytes));
    std::vector<double> rates;
    for (int round = 0; round < 10; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < launches; ++i) launch();
      Must(driver_->stream_synchronize(nullptr));
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
      if (round > 0) rates.push_back(bytes * launches / spent.count() / 1e9);
    }
    std::ranges::nth_element(rates, rates.begin() + 4);
    return rates[4];
  }

  void Line(const std::string& name, double rate) {
    std::printf("{\"name\": \"%s\", \"gb_per_s\": %.1f, \"of_copy\": %.4f}\n", name.c_str(), rate,
                rate / copy_);
    std::fflush(stdout);
  }

  void PrintTree(int inputs, const ShardMap& map) {
    const std::vector<NodeIndex> nodes = NodesOf(map);
    const TreeLevels levels = LevelsOf(map.logical_shards, nodes);
    cuda::TreeSumArguments sum{.divisor = 64, .out = buffers_[16], .elements = kElements};
    CHECK(static_cast<int>(nodes.size()) == inputs, "the shape of the tree");
    for (int i = 0; i < inputs; ++i) sum.inputs[i] = buffers_[static_cast<std::size_t>(i)];
    Line(Format("tree sum of {} inputs{}", inputs, inputs == 6 ? " of two sizes" : ""),
         RateOf((inputs + 1) * kBytes, [&] { Must(kernels_->TreeSum(sum, levels, nullptr)); }));
  }

  // Elements of each tensor.
  static std::vector<std::size_t> ResNet18() {
    std::vector<std::size_t> sizes = {64 * 3 * 9, 64, 64};
    std::size_t in = 64;
    for (const std::size_t out : {64, 128, 256, 512}) {
      for (int block = 0; block < 2; ++block) {
        sizes.insert(sizes.end(), {out * in * 9, out, out, out * out * 9, out, out});
        if (in != out) sizes.insert(sizes.end(), {out * in, out, out});
        in = out;
      }
    }
    sizes.insert(sizes.end(), {10 * 512, 10});
    return sizes;
  }
  static std::vector<std::size_t> Gpt2() {
    std::vector<std::size_t> sizes = {50'257 * 768, 1'024 * 768};
    for (int layer = 0; layer < 12; ++layer)
      sizes.insert(sizes.end(), {768, 768, 768 * 2'304, 2'304, 768 * 768, 768, 768, 768,
                                 768 * 3'072, 3'072, 3'072 * 768, 768});
    sizes.insert(sizes.end(), {768, 768});
    return sizes;
  }

  // out = left + value · scale, as for all shards after a block's first one.
  void PrintGather(const std::string& name, CudaKernels::Type type, std::size_t value_bytes,
                   const std::vector<std::size_t>& sizes) {
    cuda::GatherArguments gather{.count = static_cast<int>(sizes.size()),
                                 .scale = 8,
                                 .left = buffers_[1],
                                 .out = buffers_[1]};
    std::size_t offset = 0;
    std::size_t place = 0;  // PyTorch's tensors begin on boundaries of 512 bytes
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      gather.data[i] = reinterpret_cast<const std::byte*>(buffers_[0]) + place;
      gather.offset[i] = static_cast<std::uint32_t>(offset);
      gather.size[i] = static_cast<std::uint32_t>(sizes[i]);
      offset += sizes[i];
      place = (place + sizes[i] * value_bytes + 511) / 512 * 512;
    }
    CHECK(offset <= kElements && place <= kBytes, "it fits");
    const double bytes = static_cast<double>(offset) * static_cast<double>(value_bytes + 8);
    const double rate = RateOf(bytes, [&] { Must(kernels_->Gather(type, gather, nullptr)); });
    std::printf("{\"name\": \"%s\", \"gb_per_s\": %.1f, \"of_copy\": %.4f, \"ms\": %.5f}\n",
                name.c_str(), rate, rate / copy_, bytes / rate / 1e6);
    std::fflush(stdout);
  }

  std::shared_ptr<const CudaDriver> driver_;
  std::unique_ptr<CudaKernels> kernels_;
  std::vector<float*> buffers_;
  double copy_ = 1;
};

}  // namespace
}  // namespace pliant

int main() {
  pliant::Rates().Print();
  return EXIT_SUCCESS;
}
