// What differs from compiler to compiler and from processor to processor.
//
// GGUFBPE_X86 is defined where there are functions with wider instructions than the baseline, which are chosen at run time
// by has_avx2(). Tests define GGUFBPE_PORTABLE to have none.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(GGUFBPE_PORTABLE)
#include <immintrin.h>
#define GGUFBPE_X86 1
#endif

#if defined(__GNUC__)
#define ALWAYS_INLINE __attribute__((always_inline)) inline
#else
#define ALWAYS_INLINE inline
#endif

namespace ggufbpe {

#if GGUFBPE_X86
// And the bit instructions that come with it.
inline bool has_avx2() {
    static const bool found =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    return found;
}
#endif

// Brings memory into the cache.
inline void prefetch(const void *at) {
#if defined(__GNUC__)
    __builtin_prefetch(at);
#else
    (void)at;
#endif
}
inline void prefetch_to_write(const void *at) {
#if defined(__GNUC__)
    __builtin_prefetch(at, 1);
#else
    (void)at;
#endif
}

// To be called while waiting for another processor.
inline void wait_a_moment() {
#if GGUFBPE_X86
    _mm_pause();
#elif defined(__GNUC__) && defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// memcpy of what nobody reads soon, past the caches: the place that is written need not be fetched before.
inline void copy_past_caches(void *to, const void *from, size_t bytes) {
#if GGUFBPE_X86
    constexpr size_t LINE = 64;
    auto *target = static_cast<char *>(to);
    const auto *source = static_cast<const char *>(from);
    const size_t before = (0 - reinterpret_cast<uintptr_t>(target)) % LINE;
    if (bytes < before + LINE) {
        std::memcpy(target, source, bytes);
        return;
    }
    std::memcpy(target, source, before);
    size_t at = before;
    for (; at + LINE <= bytes; at += LINE) {
        for (size_t i = 0; i < LINE; i += 16) {
            const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i *>(source + at + i));
            _mm_stream_si128(reinterpret_cast<__m128i *>(target + at + i), some);
        }
    }
    _mm_sfence();
    std::memcpy(target + at, source + at, bytes - at);
#else
    std::memcpy(to, from, bytes);
#endif
}

// The places of the lowest and of the highest bit of a number that is not 0.
inline size_t lowest_bit(uint64_t bits) {
#if defined(__GNUC__)
    return static_cast<size_t>(__builtin_ctzll(bits));
#else
    size_t place = 0;
    while (!(bits >> place & 1)) ++place;
    return place;
#endif
}
inline size_t highest_bit(uint64_t bits) {
#if defined(__GNUC__)
    return static_cast<size_t>(63 ^ __builtin_clzll(bits));
#else
    size_t place = 63;
    while (!(bits >> place & 1)) --place;
    return place;
#endif
}

}  // namespace ggufbpe
