#include "tests/fakes/cuda/host_kernels.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "trainer/cuda/kernels.cuh"

namespace pliant::fake_cuda {
namespace {

using cuda::ChecksumArguments;
using cuda::CopyArguments;
using cuda::GatherArguments;
using cuda::SquaresArguments;
using cuda::Thread;
using cuda::TreeSumArguments;
using Host = std::function<std::byte*(std::uint64_t device)>;

template <typename T>
std::uint64_t AddressOf(T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Replaces the address on a device by that of the bytes on the host.
template <typename T>
void Translate(T*& pointer, const Host& host) {
  if (pointer == nullptr) return;
  pointer = reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(host(AddressOf(pointer))));
}

// ---- What each launch touches ----

std::vector<Access> Touched(const TreeSumArguments& sum, std::size_t) {
  const std::size_t bytes = sum.elements * sizeof(float);
  std::vector<Access> accesses;
  for (int i = 0; i < sum.count; ++i)
    accesses.push_back({.begin = AddressOf(sum.inputs[i]), .bytes = bytes});
  accesses.push_back({.begin = AddressOf(sum.out), .bytes = bytes, .writes = true});
  return accesses;
}

std::vector<Access> Touched(const GatherArguments& gather, std::size_t value_bytes) {
  std::vector<Access> accesses;
  for (int i = 0; i < gather.count; ++i) {
    const std::size_t bytes = gather.size[i] * sizeof(float);
    if (gather.data[i] != nullptr)
      accesses.push_back(
          {.begin = AddressOf(gather.data[i]), .bytes = gather.size[i] * value_bytes});
    if (gather.left != nullptr)
      accesses.push_back({.begin = AddressOf(gather.left + gather.offset[i]), .bytes = bytes});
    accesses.push_back(
        {.begin = AddressOf(gather.out + gather.offset[i]), .bytes = bytes, .writes = true});
  }
  return accesses;
}

std::vector<Access> Touched(const ChecksumArguments& bytes, std::size_t) {
  return {{.begin = AddressOf(bytes.words), .bytes = bytes.size},
          {.begin = AddressOf(bytes.sum), .bytes = sizeof *bytes.sum, .writes = true}};
}

std::vector<Access> Touched(const CopyArguments& copy, std::size_t) {
  std::vector<Access> accesses;
  for (int i = 0; i < copy.count; ++i) {
    accesses.push_back({.begin = AddressOf(copy.from[i]), .bytes = copy.size[i]});
    accesses.push_back({.begin = AddressOf(copy.to[i]), .bytes = copy.size[i], .writes = true});
  }
  return accesses;
}

std::vector<Access> Touched(const SquaresArguments& squares, std::size_t) {
  std::vector<Access> accesses;
  for (int i = 0; i < squares.count; ++i) {
    if (squares.data[i] == nullptr) continue;
    accesses.push_back(
        {.begin = AddressOf(squares.data[i]), .bytes = squares.size[i] * sizeof(float)});
  }
  accesses.push_back({.begin = AddressOf(squares.lanes),
                      .bytes = std::size_t{squares.cells} * cuda::kLanes * sizeof(double),
                      .writes = true});
  return accesses;
}

// ---- The arguments with addresses of the host ----

TreeSumArguments OnHost(TreeSumArguments sum, const Host& host) {
  for (int i = 0; i < sum.count; ++i) Translate(sum.inputs[i], host);
  Translate(sum.out, host);
  return sum;
}

GatherArguments OnHost(GatherArguments gather, const Host& host) {
  for (int i = 0; i < gather.count; ++i) Translate(gather.data[i], host);
  Translate(gather.left, host);
  Translate(gather.out, host);
  return gather;
}

CopyArguments OnHost(CopyArguments copy, const Host& host) {
  for (int i = 0; i < copy.count; ++i) {
    Translate(copy.from[i], host);
    Translate(copy.to[i], host);
  }
  return copy;
}

SquaresArguments OnHost(SquaresArguments squares, const Host& host) {
  for (int i = 0; i < squares.count; ++i) Translate(squares.data[i], host);
  Translate(squares.lanes, host);
  return squares;
}

ChecksumArguments OnHost(ChecksumArguments bytes, const Host& host) {
  Translate(bytes.words, host);
  Translate(bytes.sum, host);
  return bytes;
}

template <typename Arguments>
using Body = void (*)(const Arguments&, Thread);

// A kernel whose threads need nothing of each other, so they run one after another. `value_bytes`:
// of a value that is gathered.
template <typename Arguments>
Kernel KernelOf(const char* name, Body<Arguments> body, std::size_t value_bytes = 0) {
  return {.name = name,
          .parameter_sizes = {sizeof(Arguments)},
          .touches =
              [value_bytes](void* const* parameters, unsigned, unsigned) {
                return Touched(*static_cast<const Arguments*>(parameters[0]), value_bytes);
              },
          .run =
              [body](void* const* parameters, unsigned blocks, unsigned threads, const Host& host) {
                const Arguments arguments =
                    OnHost(*static_cast<const Arguments*>(parameters[0]), host);
                for (unsigned block = 0; block < blocks; ++block)
                  for (unsigned thread = 0; thread < threads; ++thread)
                    body(arguments, {.block = block, .thread = thread, .blocks = blocks});
              }};
}

void AddChecksum(const ChecksumArguments& bytes, Thread self) {
  *bytes.sum += cuda::ChecksumPart(bytes, self);
}

}  // namespace

std::vector<Kernel> HostKernels() {
  using cuda::float4;
  return {
      KernelOf<TreeSumArguments>("pliant_tree_sum_4", cuda::TreeSumBody<float4, 4, 8>),
      KernelOf<TreeSumArguments>("pliant_tree_sum_8", cuda::TreeSumBody<float4, 8, 4>),
      KernelOf<TreeSumArguments>("pliant_tree_sum_16", cuda::TreeSumBody<float4, 16, 4>),
      KernelOf<TreeSumArguments>("pliant_tree_sum_unaligned",
                                 cuda::TreeSumBody<float, cuda::kMaxTreeLevels, 4>),
      KernelOf<TreeSumArguments>("pliant_balanced_sum_2", cuda::BalancedSumBody<2, 4>),
      KernelOf<TreeSumArguments>("pliant_balanced_sum_4", cuda::BalancedSumBody<4, 2>),
      KernelOf<TreeSumArguments>("pliant_balanced_sum_8", cuda::BalancedSumBody<8, 1>),
      KernelOf<TreeSumArguments>("pliant_balanced_sum_16", cuda::BalancedSumBody<16, 1>),
      KernelOf<GatherArguments>("pliant_gather_f32", cuda::GatherBody<cuda::Float32>, 4),
      KernelOf<GatherArguments>("pliant_gather_f16", cuda::GatherBody<cuda::Float16>, 2),
      KernelOf<GatherArguments>("pliant_gather_bf16", cuda::GatherBody<cuda::BFloat16>, 2),
      KernelOf<CopyArguments>("pliant_copy", cuda::CopyBody),
      KernelOf<SquaresArguments>("pliant_squares", cuda::SquaresBody),
      KernelOf<ChecksumArguments>("pliant_checksum", AddChecksum),
  };
}

}  // namespace pliant::fake_cuda
