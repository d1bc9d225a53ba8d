// The Python extension module ggufbpe.kernel._native: the parts, put together.

#include "bindings.h"
#include "fork.h"
#include "machine.h"
#include "memory.h"

NB_MODULE(_native, module) {
    module.doc() = "The compiled engine. Use it through ggufbpe.Tokenizer.";
    ggufbpe::ForkGate::install();
    // What is made on first use is made now: a thread that is about it would be lost in a fork, and its guard held for ever.
    ggufbpe::HugePages::release();
#if GGUFBPE_X86
    ggufbpe::has_avx2();
#endif
    // Daemon threads that the interpreter's end stops keep their objects for ever, which is no mistake of anybody.
    nanobind::set_leak_warnings(false);
    ggufbpe::bind_strings(module);
    ggufbpe::bind_split(module);
    ggufbpe::bind_models(module);
    ggufbpe::bind_encoder(module);
    ggufbpe::bind_train(module);
}
