// The Python extension module ggufbpe.kernel._native: the parts, put together.

#include "bindings.h"
#include "fork.h"

NB_MODULE(_native, module) {
    module.doc() = "The compiled engine. Use it through ggufbpe.Tokenizer.";
    ggufbpe::ForkGate::install();
    ggufbpe::bind_strings(module);
    ggufbpe::bind_split(module);
    ggufbpe::bind_encoder(module);
    ggufbpe::bind_train(module);
}
