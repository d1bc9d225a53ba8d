// Whether there are functions with wider instructions than the baseline, to be chosen at run time: GGUFBPE_X86 is defined
// then. Tests define GGUFBPE_PORTABLE to have none.

#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GGUFBPE_PORTABLE)
#include <immintrin.h>
#define GGUFBPE_X86 1
#endif
