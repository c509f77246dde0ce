#include "trainer/cuda/kernel_image.h"

#if defined(PLIANT_KERNELS)

// PLIANT_KERNELS: the folder of the compiled kernels, as a string.
#define PLIANT_EMBED(name, file)             \
  asm(".pushsection .rodata\n"               \
      ".balign 16\n"                         \
      ".local " #name "_begin\n" #name       \
      "_begin:\n"                            \
      ".incbin \"" PLIANT_KERNELS "/" file   \
      "\"\n"                                 \
      ".byte 0\n"                            \
      ".local " #name "_end\n" #name         \
      "_end:\n"                              \
      ".popsection\n");                      \
  extern "C" const std::byte name##_begin[]; \
  extern "C" const std::byte name##_end[]

PLIANT_EMBED(pliant_kernels_80, "80.cubin");
PLIANT_EMBED(pliant_kernels_90, "90.cubin");
PLIANT_EMBED(pliant_kernels_100, "100.cubin");
PLIANT_EMBED(pliant_kernels_ptx, "80.ptx");

namespace pliant::cuda {

std::span<const std::byte> KernelImage(int major, int minor) {
  // Code for a generation also runs on its later GPUs.
  if (major == 8) return {pliant_kernels_80_begin, pliant_kernels_80_end};
  if (major == 9 && minor == 0) return {pliant_kernels_90_begin, pliant_kernels_90_end};
  if (major == 10) return {pliant_kernels_100_begin, pliant_kernels_100_end};
  return {pliant_kernels_ptx_begin, pliant_kernels_ptx_end};
}

}  // namespace pliant::cuda

#else

namespace pliant::cuda {

std::span<const std::byte> KernelImage(int, int) { return {}; }

}  // namespace pliant::cuda

#endif
