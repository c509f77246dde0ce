#pragma once

namespace pliant {

// From here on, permanently, this process reuses the memory that it frees, and does not return it
// to the system.
//
// A shard's activations and gradients are freed when it ends. The C library then returns the pages
// at the end of the heap, and for the next shard each of them is cleared and mapped again, which
// takes a tenth of a step. Whether it does so depends on what happens to lie above them; a loop
// that keeps its gradients from batch to batch avoids it by chance. Thresholds of the C library
// that the environment sets (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES) stay.
void KeepFreedMemory();

}  // namespace pliant
