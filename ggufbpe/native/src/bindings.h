// The parts of the extension module, one function each, called by module.cpp.
#pragma once

#include <nanobind/nanobind.h>

namespace ggufbpe {

void bind_encoder(nanobind::module_ &module);
void bind_files(nanobind::module_ &module);
void bind_loading(nanobind::module_ &module);
void bind_split(nanobind::module_ &module);
void bind_strings(nanobind::module_ &module);
void bind_train(nanobind::module_ &module);

}  // namespace ggufbpe
