// Runs a fuzz harness on random bytes, where there is no libFuzzer to choose better ones.
//
//     program [--seconds S] [--count N] [--seed K] [--case I] [file ...]
//
// Seconds are of the processor where the system counts them: as many cases are run where others use the machine.
// A case is made of the seed and its number alone: what is printed when one fails, `--seed K --case I`, runs it again.
// Files are run as cases of their own.

#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>
#if !defined(_WIN32)
#include <unistd.h>
#endif

#include "harness.h"

namespace {

[[maybe_unused]] constexpr unsigned LONGEST_CASE = 120;  // seconds; sanitizers are slow, and machines are busy

unsigned long long seed = 1, number = 0;

#if defined(_WIN32)  // has no alarm, and lets a handler print

void end_when_too_long() {}

void on_abort(int) { std::fprintf(stderr, "failed: --seed %llu --case %llu\n", seed, number); }

#else

void tell(const char *what) {
    char text[120];
    int size = std::snprintf(text, sizeof text, "%s: --seed %llu --case %llu\n", what, seed, number);
    if (write(2, text, static_cast<size_t>(size)) < 0) _exit(3);
}

void on_abort(int) { tell("failed"); }

void on_alarm(int) {
    tell("takes too long");
    _exit(1);
}

void end_when_too_long() {
    std::signal(SIGALRM, on_alarm);
    alarm(LONGEST_CASE);
}

#endif

std::vector<uint8_t> bytes_of(unsigned long long which) {
    Random random(seed * 0x9E3779B97F4A7C15u + which);
    // Mostly short, and with stretches of equal bytes, which make equal decisions.
    std::vector<uint8_t> bytes(random.below(random.below(4) ? 600 : 6000));
    for (size_t i = 0; i < bytes.size();) {
        const size_t run = random.below(20) ? 1 : 1 + random.below(60);
        const uint8_t value = static_cast<uint8_t>(random.next() >> 32);
        for (size_t k = 0; k < run && i < bytes.size(); ++k) bytes[i++] = value;
    }
    return bytes;
}

void run(const std::vector<uint8_t> &bytes) {
    end_when_too_long();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char **argv) {
    double seconds = 0;
    unsigned long long count = 0;
    bool one = false, files = false;
    std::signal(SIGABRT, on_abort);
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name.substr(0, 2) == "--" && i + 1 == argc) {
            std::fprintf(stderr, "%s needs a number\n", argv[i]);
            return 2;
        }
        if (name == "--seconds") {
            seconds = std::atof(argv[++i]);
        } else if (name == "--count") {
            count = std::strtoull(argv[++i], nullptr, 10);
        } else if (name == "--seed") {
            seed = std::strtoull(argv[++i], nullptr, 10);
        } else if (name == "--case") {
            number = std::strtoull(argv[++i], nullptr, 10);
            one = true;
        } else {
            std::ifstream file(name, std::ios::binary);
            run(std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {}));
            files = true;
        }
    }
    if (one) run(bytes_of(number));
    if (one || files) return 0;
    if (!count && seconds <= 0) count = 1000;
    const std::clock_t begun = std::clock();
    auto passed = [&] { return static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC; };
    while ((!count || number < count) && (seconds <= 0 || passed() < seconds)) {
        run(bytes_of(number));
        ++number;
    }
    std::printf("%llu cases in %.1f s\n", number, passed());
    return 0;
}
