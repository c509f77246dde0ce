#pragma once

namespace pliant {

// From here on, for good, what this process frees is used again by it, and not given back to the
// system.
//
// A shard's activations and gradients are freed when it ends. The C library then hands the pages at
// the end of the heap back, and the next shard has each of them cleared and mapped anew: a tenth of
// a step. Whether it does depends on what happens to lie above them; a loop whose gradients live on
// from batch to batch is spared by chance. Where the environment sets the C library's thresholds
// (MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES), they stay.
void KeepFreedMemory();

}  // namespace pliant
