// What module.cpp puts together: one function for each part of the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace ggufbpe {

void bind_encoder(nanobind::module_ &module);
void bind_models(nanobind::module_ &module);
void bind_split(nanobind::module_ &module);
void bind_strings(nanobind::module_ &module);
void bind_train(nanobind::module_ &module);

}  // namespace ggufbpe
