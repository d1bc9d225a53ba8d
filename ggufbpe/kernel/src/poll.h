// How long work is interrupted.

#pragma once

#include <functional>

namespace ggufbpe {

// Asked now and then in long work; may throw to end it (a pressed Ctrl-C). Whoever asks holds no lock: what is asked may
// run the handlers of signals, and these may do anything.
using Poll = std::function<void()>;

}  // namespace ggufbpe
