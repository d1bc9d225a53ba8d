// The differences between compilers and between processors. Nothing else in the kernel uses a compiler's builtins; vectors of
// bytes are in simd.h.
//
// GGUFBPE_X86 is defined where there are functions with wider instructions than the baseline, which are chosen at run time
// by has_avx2(); GGUFBPE_NEON and GGUFBPE_WASM where these instructions are the baseline. Tests define GGUFBPE_PORTABLE to have neither.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if !defined(GGUFBPE_PORTABLE)
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#define GGUFBPE_X86 1
#elif (defined(__aarch64__) && !defined(__AARCH64EB__)) || defined(_M_ARM64)
#include <arm_neon.h>
#define GGUFBPE_NEON 1
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#define GGUFBPE_WASM 1
#endif
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define GGUFBPE_MSVC 1
#endif

// ThreadSanitizer sees no order in reads by vectors.
#if defined(__SANITIZE_THREAD__)
#define GGUFBPE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GGUFBPE_THREAD_SANITIZER 1
#endif
#endif

#if GGUFBPE_MSVC
#define ALWAYS_INLINE __forceinline
#define NEVER_INLINE __declspec(noinline)
#else
#define ALWAYS_INLINE __attribute__((always_inline)) inline
#define NEVER_INLINE __attribute__((noinline))
#endif

// A function that uses these instructions; it is called only if has_avx2(). MSVC needs no attribute to use them.
#if GGUFBPE_X86 && !GGUFBPE_MSVC
#define WITH_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#else
#define WITH_AVX2
#endif

namespace ggufbpe {

#if GGUFBPE_X86
// The processor's description of itself, by the number of the question: EAX, EBX, ECX, EDX.
struct CpuId {
    explicit CpuId(unsigned question) {
#if GGUFBPE_MSVC
        __cpuidex(reinterpret_cast<int *>(registers), static_cast<int>(question), 0);
#else
        // volatile, so that it is not hoisted to where it is not needed: it takes 20 us in a virtual machine
        __asm__ volatile("cpuid"
                         : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]), "=d"(registers[3])
                         : "a"(question), "c"(0));
#endif
    }
    unsigned registers[4];
};

// Which registers the system saves for each thread: bit 1 for those of 16 bytes, bit 2 for those of 32.
inline unsigned kept_registers() {
#if GGUFBPE_MSVC
    return static_cast<unsigned>(_xgetbv(0));
#else
    unsigned kept, upper;
    __asm__ volatile("xgetbv" : "=a"(kept), "=d"(upper) : "c"(0));
    return kept;
#endif
}

// AVX2, and the bit instructions that come with it. Not by __builtin_cpu_supports, which reads results of the compiler's
// run-time library: that of Zig, which the wheels are built with, has none.
inline bool has_avx2() {
    static const bool found = [] {
        if (CpuId(0).registers[0] < 7) return false;
        const bool may_ask_system = CpuId(1).registers[2] >> 27 & 1;
        constexpr unsigned AVX2_AND_BITS = 1 << 3 | 1 << 5 | 1 << 8;  // BMI1, AVX2, BMI2
        return may_ask_system && (kept_registers() & 6) == 6 && (CpuId(7).registers[1] & AVX2_AND_BITS) == AVX2_AND_BITS;
    }();
    return found;
}
#endif

// Brings memory into the cache.
inline void prefetch(const void *at) {
#if !GGUFBPE_MSVC
    __builtin_prefetch(at);
#elif GGUFBPE_X86
    _mm_prefetch(static_cast<const char *>(at), _MM_HINT_T0);
#else
    (void)at;
#endif
}
inline void prefetch_to_write(const void *at) {
#if !GGUFBPE_MSVC
    __builtin_prefetch(at, 1);
#else
    prefetch(at);
#endif
}

// To be called in a loop that waits for another processor.
inline void wait_a_moment() {
#if GGUFBPE_X86
    _mm_pause();
#elif GGUFBPE_MSVC && defined(_M_ARM64)
    __yield();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// memcpy of data that is not read soon, past the caches: the destination need not be fetched first. Except on x86-64, memcpy
// does so itself where it pays.
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
ALWAYS_INLINE size_t lowest_bit(uint64_t bits) {
#if GGUFBPE_MSVC
    unsigned long place;
    _BitScanForward64(&place, bits);
    return place;
#else
    return static_cast<size_t>(__builtin_ctzll(bits));
#endif
}
ALWAYS_INLINE size_t highest_bit(uint64_t bits) {
#if GGUFBPE_MSVC
    unsigned long place;
    _BitScanReverse64(&place, bits);
    return place;
#else
    return static_cast<size_t>(63 ^ __builtin_clzll(bits));
#endif
}

// How many bits are set.
ALWAYS_INLINE size_t count_bits(uint64_t bits) {
#if GGUFBPE_MSVC && GGUFBPE_X86
    return static_cast<size_t>(__popcnt64(bits));
#elif GGUFBPE_MSVC
    size_t count = 0;
    for (; bits; bits &= bits - 1) ++count;
    return count;
#else
    return static_cast<size_t>(__builtin_popcountll(bits));
#endif
}

// The two halves of a product of 128 bits, one folded into the other.
ALWAYS_INLINE uint64_t multiply_and_fold(uint64_t a, uint64_t b) {
#if GGUFBPE_MSVC && defined(_M_X64)
    uint64_t high;
    const uint64_t low = _umul128(a, b, &high);
    return low ^ high;
#elif GGUFBPE_MSVC
    return a * b ^ __umulh(a, b);
#elif defined(__SIZEOF_INT128__) && !defined(__wasm__)  // there it is a call of the compiler's library
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
    const uint64_t a_low = a & UINT32_MAX, a_high = a >> 32, b_low = b & UINT32_MAX, b_high = b >> 32;
    const uint64_t middle = (a_low * b_low >> 32) + (a_high * b_low & UINT32_MAX) + a_low * b_high;
    const uint64_t high = a_high * b_high + (a_high * b_low >> 32) + (middle >> 32);
    return a * b ^ high;
#endif
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
constexpr bool IS_BIG_ENDIAN = true;
#else
constexpr bool IS_BIG_ENDIAN = false;
#endif

// The bytes of a number in the opposite order.
ALWAYS_INLINE uint64_t swap_bytes(uint64_t number) {
#if GGUFBPE_MSVC
    return _byteswap_uint64(number);
#else
    return __builtin_bswap64(number);
#endif
}

// Eight bytes as a number; the first byte is the lowest one.
ALWAYS_INLINE uint64_t eight_bytes(const unsigned char *from) {
    uint64_t number;
    std::memcpy(&number, from, sizeof number);
    return IS_BIG_ENDIAN ? swap_bytes(number) : number;
}

// Whether `size` bytes, 8 or more, are equal. Calling memcmp takes longer for a word, and compares single bytes in WebAssembly.
inline bool are_equal(const unsigned char *one, const unsigned char *other, size_t size) {
    for (size_t at = 0; at < size - 8; at += 8) {
        if (eight_bytes(one + at) != eight_bytes(other + at)) return false;
    }
    return eight_bytes(one + size - 8) == eight_bytes(other + size - 8);
}

}  // namespace ggufbpe
