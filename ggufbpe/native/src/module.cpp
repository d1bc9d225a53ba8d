// The Python extension module ggufbpe.native._native: the parts, put together.

#include "bindings.h"
#include "fork.h"
#include "machine.h"
#include "memory.h"

NB_MODULE(_native, module) {
    module.doc() = "The compiled engine. Use it through ggufbpe.Tokenizer.";
    module.attr("BUILD") = GGUFBPE_BUILD;  // a hash of the sources and of what compiled them
    ggufbpe::ForkGate::install();
    // Statics are made now: a thread that makes one could be lost in a fork, and its guard held forever.
    ggufbpe::HugePages::release();
#if GGUFBPE_X86
    ggufbpe::has_avx2();
#endif
    // Daemon threads stopped at the interpreter's end keep their objects forever, which is not an error.
    nanobind::set_leak_warnings(false);
    ggufbpe::bind_strings(module);
    ggufbpe::bind_split(module);
    ggufbpe::bind_files(module);
    ggufbpe::bind_loading(module);
    ggufbpe::bind_encoder(module);
    ggufbpe::bind_train(module);
}
