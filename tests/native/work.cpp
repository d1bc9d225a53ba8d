// Counts what the kernel does, where it is compiled to tell (CMakeLists.txt: GGUFBPE_COUNT_WORK): each of its basic blocks
// calls this. Unlike time, the count is the same on every machine and in every run.

#include "harness.h"

namespace {

thread_local uint64_t blocks = 0;

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

uint64_t work_done() { return blocks; }
