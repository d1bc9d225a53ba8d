// The library is loaded where the system gives no random numbers, and its hashes have seeds all the same.

#include <random>
#include <set>
#include <stdexcept>

#include "harness.h"
#include "string_array.h"

#if defined(__GLIBCXX__)

// In place of the standard library's: what a std::random_device calls to begin.
void std::random_device::_M_init(const std::string &) { throw std::runtime_error("there are no random numbers here"); }

#endif

int main() {
    // Before main(), the seeds were drawn.
    using ggufbpe::BYTES_SEEDS, ggufbpe::HASH_SEEDS;
    const std::set<uint64_t> seeds = {0, BYTES_SEEDS[0], BYTES_SEEDS[1], HASH_SEEDS[0], HASH_SEEDS[1]};
    CHECK(seeds.size() == 5);
#if defined(__GLIBCXX__)
    bool is_refused = false;
    try {
        std::random_device device;
    } catch (const std::runtime_error &) {
        is_refused = true;
    }
    CHECK(is_refused);  // or this test would say nothing
#endif
    return 0;
}
