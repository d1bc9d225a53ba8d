// Vectors of 32 bytes behind one small set of functions: a register of AVX2, or two of NEON or of WebAssembly. An algorithm is written once, in
// functions marked WITH_AVX2 (machine.h), beside a plain form for all other processors.
//
// GGUFBPE_VECTORS is defined where there are such vectors at all; whether this processor has them is has_vectors(). Masks
// are bytes of 0xFF and of 0.

#pragma once

#include "machine.h"

#if GGUFBPE_X86 || GGUFBPE_NEON || GGUFBPE_WASM

#define GGUFBPE_VECTORS 1

#if GGUFBPE_X86 && !GGUFBPE_MSVC
#define VECTOR_INLINE __attribute__((target("avx2"), always_inline)) inline
#else
#define VECTOR_INLINE ALWAYS_INLINE
#endif

namespace ggufbpe {

constexpr size_t VECTOR_BYTES = 32;

#if GGUFBPE_X86

inline bool has_vectors() { return has_avx2(); }

struct Bytes {
    __m256i all;
};

VECTOR_INLINE Bytes load(const uint8_t *from) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i *>(from))}; }
VECTOR_INLINE void store(uint8_t *to, Bytes bytes) { _mm256_storeu_si256(reinterpret_cast<__m256i *>(to), bytes.all); }
VECTOR_INLINE Bytes repeat(uint8_t byte) { return {_mm256_set1_epi8(static_cast<char>(byte))}; }

VECTOR_INLINE Bytes operator&(Bytes a, Bytes b) { return {_mm256_and_si256(a.all, b.all)}; }
VECTOR_INLINE Bytes operator|(Bytes a, Bytes b) { return {_mm256_or_si256(a.all, b.all)}; }
VECTOR_INLINE Bytes and_not(Bytes a, Bytes b) { return {_mm256_andnot_si256(b.all, a.all)}; }  // a & ~b
VECTOR_INLINE Bytes lower_nibbles(Bytes a) { return a & repeat(15); }
VECTOR_INLINE Bytes upper_nibbles(Bytes a) { return lower_nibbles({_mm256_srli_epi16(a.all, 4)}); }
VECTOR_INLINE Bytes is_zero(Bytes a) { return {_mm256_cmpeq_epi8(a.all, _mm256_setzero_si256())}; }
VECTOR_INLINE Bytes is_not_zero(Bytes a) { return {_mm256_xor_si256(is_zero(a).all, _mm256_set1_epi8(-1))}; }
// `chosen` where the mask is set, else `otherwise`.
VECTOR_INLINE Bytes choose(Bytes mask, Bytes chosen, Bytes otherwise) {
    return {_mm256_blendv_epi8(otherwise.all, chosen.all, mask.all)};
}
// Bit i is the highest bit of byte i.
VECTOR_INLINE uint32_t highest_bits(Bytes a) { return static_cast<uint32_t>(_mm256_movemask_epi8(a.all)); }

// 16 bytes, looked up by indices below 16.
class Shuffle {
public:
    VECTOR_INLINE explicit Shuffle(const uint8_t *table)
        : row_(_mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(table)))) {}
    VECTOR_INLINE Bytes operator()(Bytes indices) const { return {_mm256_shuffle_epi8(row_, indices.all)}; }

private:
    __m256i row_;
};

// The same for indices below 16 * ROWS, at most 128.
template <int ROWS>
class LookUp {
public:
    VECTOR_INLINE explicit LookUp(const uint8_t *table) {
        for (int row = 0; row < ROWS; ++row) {
            rows_[row] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i *>(table + 16 * row)));
        }
    }
    VECTOR_INLINE Bytes operator()(Bytes indices) const {
        const __m256i limit = _mm256_set1_epi8(0x70);
        __m256i result = _mm256_setzero_si256();
        for (int row = 0; row < ROWS; ++row) {
            // In its own row an index is 0x70 to 0x7F, which is 0 to 15 to a shuffle; in others the highest bit is set,
            // which gives 0.
            const __m256i tag = _mm256_set1_epi8(static_cast<char>(row << 4));
            const __m256i index = _mm256_adds_epu8(_mm256_xor_si256(indices.all, tag), limit);
            result = _mm256_or_si256(result, _mm256_shuffle_epi8(rows_[row], index));
        }
        return {result};
    }

private:
    __m256i rows_[ROWS];
};

// Eight numbers, for ranks. Memory is aligned to 32 bytes.
struct Numbers {
    __m256i all;
};

VECTOR_INLINE Numbers load_numbers(const uint32_t *from) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i *>(from))};
}
VECTOR_INLINE Numbers lower(Numbers a, Numbers b) { return {_mm256_min_epu32(a.all, b.all)}; }
// The lowest of the eight, eight times.
VECTOR_INLINE Numbers lowest(Numbers a) {
    a = lower(a, {_mm256_permute2x128_si256(a.all, a.all, 1)});
    a = lower(a, {_mm256_shuffle_epi32(a.all, 0x4E)});
    return lower(a, {_mm256_shuffle_epi32(a.all, 0xB1)});
}
// Bit i says whether the two are equal at i.
VECTOR_INLINE uint32_t equal_places(Numbers a, Numbers b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.all, b.all))));
}

// Four numbers of 64 bits. Memory is aligned to 32 bytes.
struct WideNumbers {
    __m256i all;
};

VECTOR_INLINE WideNumbers load_wide(const uint64_t *from) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i *>(from))};
}
VECTOR_INLINE WideNumbers repeat_wide(uint64_t number) { return {_mm256_set1_epi64x(static_cast<long long>(number))}; }
VECTOR_INLINE WideNumbers operator&(WideNumbers a, WideNumbers b) { return {_mm256_and_si256(a.all, b.all)}; }
VECTOR_INLINE WideNumbers operator|(WideNumbers a, WideNumbers b) { return {_mm256_or_si256(a.all, b.all)}; }
// All bits of those numbers that are equal.
VECTOR_INLINE WideNumbers is_equal(WideNumbers a, WideNumbers b) { return {_mm256_cmpeq_epi64(a.all, b.all)}; }
VECTOR_INLINE uint64_t or_of_all(WideNumbers a) {
    const __m128i two = _mm_or_si128(_mm256_castsi256_si128(a.all), _mm256_extracti128_si256(a.all, 1));
    return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_or_si128(two, _mm_unpackhi_epi64(two, two))));
}

#elif GGUFBPE_WASM

constexpr bool has_vectors() { return true; }

struct Bytes {
    v128_t low, high;
};

VECTOR_INLINE Bytes load(const uint8_t *from) { return {wasm_v128_load(from), wasm_v128_load(from + 16)}; }
VECTOR_INLINE void store(uint8_t *to, Bytes bytes) {
    wasm_v128_store(to, bytes.low);
    wasm_v128_store(to + 16, bytes.high);
}
VECTOR_INLINE Bytes repeat(uint8_t byte) {
    const v128_t all = wasm_i8x16_splat(static_cast<int8_t>(byte));
    return {all, all};
}

VECTOR_INLINE Bytes operator&(Bytes a, Bytes b) { return {wasm_v128_and(a.low, b.low), wasm_v128_and(a.high, b.high)}; }
VECTOR_INLINE Bytes operator|(Bytes a, Bytes b) { return {wasm_v128_or(a.low, b.low), wasm_v128_or(a.high, b.high)}; }
VECTOR_INLINE Bytes and_not(Bytes a, Bytes b) {  // a & ~b
    return {wasm_v128_andnot(a.low, b.low), wasm_v128_andnot(a.high, b.high)};
}
VECTOR_INLINE Bytes lower_nibbles(Bytes a) { return a & repeat(15); }
// Shifts of 16 bits: browsers run shifts of bytes as several instructions.
VECTOR_INLINE Bytes upper_nibbles(Bytes a) {
    return lower_nibbles({wasm_u16x8_shr(a.low, 4), wasm_u16x8_shr(a.high, 4)});
}
VECTOR_INLINE Bytes is_zero(Bytes a) {
    const v128_t zero = wasm_i8x16_splat(0);
    return {wasm_i8x16_eq(a.low, zero), wasm_i8x16_eq(a.high, zero)};
}
VECTOR_INLINE Bytes is_not_zero(Bytes a) {
    const v128_t zero = wasm_i8x16_splat(0);
    return {wasm_i8x16_ne(a.low, zero), wasm_i8x16_ne(a.high, zero)};
}
// `chosen` where the mask is set, else `otherwise`.
VECTOR_INLINE Bytes choose(Bytes mask, Bytes chosen, Bytes otherwise) {
    return {wasm_v128_bitselect(chosen.low, otherwise.low, mask.low),
            wasm_v128_bitselect(chosen.high, otherwise.high, mask.high)};
}
// Bit i is the highest bit of byte i.
VECTOR_INLINE uint32_t highest_bits(Bytes a) {
    return static_cast<uint32_t>(wasm_i8x16_bitmask(a.low)) | static_cast<uint32_t>(wasm_i8x16_bitmask(a.high)) << 16;
}

// 16 bytes, of which each index below 16 gives one.
class Shuffle {
public:
    VECTOR_INLINE explicit Shuffle(const uint8_t *table) : row_(wasm_v128_load(table)) {}
    VECTOR_INLINE Bytes operator()(Bytes indices) const {
        return {wasm_i8x16_swizzle(row_, indices.low), wasm_i8x16_swizzle(row_, indices.high)};
    }

private:
    v128_t row_;
};

// The same for indices below 16 * ROWS, at most 128.
template <int ROWS>
class LookUp {
public:
    VECTOR_INLINE explicit LookUp(const uint8_t *table) {
        for (int row = 0; row < ROWS; ++row) rows_[row] = wasm_v128_load(table + 16 * row);
    }
    VECTOR_INLINE Bytes operator()(Bytes indices) const { return {in(indices.low), in(indices.high)}; }

private:
    // An index of another row is 16 or more here, which gives 0.
    VECTOR_INLINE v128_t in(v128_t indices) const {
        v128_t result = wasm_i8x16_splat(0);
        for (int row = 0; row < ROWS; ++row) {
            const v128_t index = wasm_i8x16_sub(indices, wasm_i8x16_splat(static_cast<int8_t>(row << 4)));
            result = wasm_v128_or(result, wasm_i8x16_swizzle(rows_[row], index));
        }
        return result;
    }
    v128_t rows_[ROWS];
};

// Eight numbers, for ranks.
struct Numbers {
    v128_t low, high;
};

VECTOR_INLINE Numbers load_numbers(const uint32_t *from) { return {wasm_v128_load(from), wasm_v128_load(from + 4)}; }
VECTOR_INLINE Numbers lower(Numbers a, Numbers b) { return {wasm_u32x4_min(a.low, b.low), wasm_u32x4_min(a.high, b.high)}; }
// The lowest of the eight, eight times.
VECTOR_INLINE Numbers lowest(Numbers a) {
    v128_t all = wasm_u32x4_min(a.low, a.high);
    all = wasm_u32x4_min(all, wasm_i32x4_shuffle(all, all, 2, 3, 0, 1));
    all = wasm_u32x4_min(all, wasm_i32x4_shuffle(all, all, 1, 0, 3, 2));
    return {all, all};
}
// Bit i says whether the two are equal at i.
VECTOR_INLINE uint32_t equal_places(Numbers a, Numbers b) {
    return static_cast<uint32_t>(wasm_i32x4_bitmask(wasm_i32x4_eq(a.low, b.low))) |
           static_cast<uint32_t>(wasm_i32x4_bitmask(wasm_i32x4_eq(a.high, b.high))) << 4;
}

// Four numbers of 64 bits.
struct WideNumbers {
    v128_t low, high;
};

VECTOR_INLINE WideNumbers load_wide(const uint64_t *from) { return {wasm_v128_load(from), wasm_v128_load(from + 2)}; }
VECTOR_INLINE WideNumbers repeat_wide(uint64_t number) {
    const v128_t both = wasm_i64x2_splat(static_cast<int64_t>(number));
    return {both, both};
}
VECTOR_INLINE WideNumbers operator&(WideNumbers a, WideNumbers b) {
    return {wasm_v128_and(a.low, b.low), wasm_v128_and(a.high, b.high)};
}
VECTOR_INLINE WideNumbers operator|(WideNumbers a, WideNumbers b) {
    return {wasm_v128_or(a.low, b.low), wasm_v128_or(a.high, b.high)};
}
// All bits of those numbers that are equal.
VECTOR_INLINE WideNumbers is_equal(WideNumbers a, WideNumbers b) {
    return {wasm_i64x2_eq(a.low, b.low), wasm_i64x2_eq(a.high, b.high)};
}
VECTOR_INLINE uint64_t or_of_all(WideNumbers a) {
    const v128_t two = wasm_v128_or(a.low, a.high);
    return static_cast<uint64_t>(wasm_i64x2_extract_lane(two, 0)) | static_cast<uint64_t>(wasm_i64x2_extract_lane(two, 1));
}

#else

constexpr bool has_vectors() { return true; }

struct Bytes {
    uint8x16_t low, high;
};

VECTOR_INLINE Bytes load(const uint8_t *from) { return {vld1q_u8(from), vld1q_u8(from + 16)}; }
VECTOR_INLINE void store(uint8_t *to, Bytes bytes) {
    vst1q_u8(to, bytes.low);
    vst1q_u8(to + 16, bytes.high);
}
VECTOR_INLINE Bytes repeat(uint8_t byte) { return {vdupq_n_u8(byte), vdupq_n_u8(byte)}; }

VECTOR_INLINE Bytes operator&(Bytes a, Bytes b) { return {vandq_u8(a.low, b.low), vandq_u8(a.high, b.high)}; }
VECTOR_INLINE Bytes operator|(Bytes a, Bytes b) { return {vorrq_u8(a.low, b.low), vorrq_u8(a.high, b.high)}; }
VECTOR_INLINE Bytes and_not(Bytes a, Bytes b) { return {vbicq_u8(a.low, b.low), vbicq_u8(a.high, b.high)}; }  // a & ~b
VECTOR_INLINE Bytes lower_nibbles(Bytes a) { return a & repeat(15); }
VECTOR_INLINE Bytes upper_nibbles(Bytes a) { return {vshrq_n_u8(a.low, 4), vshrq_n_u8(a.high, 4)}; }
VECTOR_INLINE Bytes is_zero(Bytes a) { return {vceqzq_u8(a.low), vceqzq_u8(a.high)}; }
VECTOR_INLINE Bytes is_not_zero(Bytes a) { return {vtstq_u8(a.low, a.low), vtstq_u8(a.high, a.high)}; }
// `chosen` where the mask is set, else `otherwise`.
VECTOR_INLINE Bytes choose(Bytes mask, Bytes chosen, Bytes otherwise) {
    return {vbslq_u8(mask.low, chosen.low, otherwise.low), vbslq_u8(mask.high, chosen.high, otherwise.high)};
}
// Bit i is the highest bit of byte i.
VECTOR_INLINE uint32_t highest_bits(Bytes a) {
    static const uint8_t PLACES[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t places = vld1q_u8(PLACES);
    const uint8x16_t low = vandq_u8(vcltzq_s8(vreinterpretq_s8_u8(a.low)), places);
    const uint8x16_t high = vandq_u8(vcltzq_s8(vreinterpretq_s8_u8(a.high)), places);
    uint8x16_t sums = vpaddq_u8(low, high);  // three times, and a byte is the sum of eight
    sums = vpaddq_u8(sums, sums);
    sums = vpaddq_u8(sums, sums);
    return vgetq_lane_u32(vreinterpretq_u32_u8(sums), 0);
}

// 16 bytes, of which each index below 16 gives one.
class Shuffle {
public:
    VECTOR_INLINE explicit Shuffle(const uint8_t *table) : row_(vld1q_u8(table)) {}
    VECTOR_INLINE Bytes operator()(Bytes indices) const {
        return {vqtbl1q_u8(row_, indices.low), vqtbl1q_u8(row_, indices.high)};
    }

private:
    uint8x16_t row_;
};

// The same for indices below 16 * ROWS, at most 128.
template <int ROWS>
class LookUp {
public:
    VECTOR_INLINE explicit LookUp(const uint8_t *table) {
        for (int row = 0; row < ROWS; ++row) rows_[row / 4].val[row % 4] = vld1q_u8(table + 16 * row);
    }
    VECTOR_INLINE Bytes operator()(Bytes indices) const { return {in(indices.low), in(indices.high)}; }

private:
    static_assert(ROWS <= 4 || ROWS == 8, "what the instructions take");
    VECTOR_INLINE uint8x16_t in(uint8x16_t indices) const {
        const uint8x16_t first = vqtbl4q_u8(rows_[0], indices);
        if constexpr (ROWS <= 4) return first;
        return vqtbx4q_u8(first, rows_[ROWS / 8], vsubq_u8(indices, vdupq_n_u8(64)));
    }
    uint8x16x4_t rows_[ROWS / 8 + 1] = {};
};

// Eight numbers, for ranks.
struct Numbers {
    uint32x4_t low, high;
};

VECTOR_INLINE Numbers load_numbers(const uint32_t *from) { return {vld1q_u32(from), vld1q_u32(from + 4)}; }
VECTOR_INLINE Numbers lower(Numbers a, Numbers b) { return {vminq_u32(a.low, b.low), vminq_u32(a.high, b.high)}; }
// The lowest of the eight, eight times.
VECTOR_INLINE Numbers lowest(Numbers a) {
    const uint32x4_t all = vdupq_n_u32(vminvq_u32(vminq_u32(a.low, a.high)));
    return {all, all};
}
// Bit i says whether the two are equal at i.
VECTOR_INLINE uint32_t equal_places(Numbers a, Numbers b) {
    static const uint16_t PLACES[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t are_equal =
        vcombine_u16(vmovn_u32(vceqq_u32(a.low, b.low)), vmovn_u32(vceqq_u32(a.high, b.high)));
    return vaddvq_u16(vandq_u16(are_equal, vld1q_u16(PLACES)));
}

// Four numbers of 64 bits.
struct WideNumbers {
    uint64x2_t low, high;
};

VECTOR_INLINE WideNumbers load_wide(const uint64_t *from) { return {vld1q_u64(from), vld1q_u64(from + 2)}; }
VECTOR_INLINE WideNumbers repeat_wide(uint64_t number) { return {vdupq_n_u64(number), vdupq_n_u64(number)}; }
VECTOR_INLINE WideNumbers operator&(WideNumbers a, WideNumbers b) { return {vandq_u64(a.low, b.low), vandq_u64(a.high, b.high)}; }
VECTOR_INLINE WideNumbers operator|(WideNumbers a, WideNumbers b) { return {vorrq_u64(a.low, b.low), vorrq_u64(a.high, b.high)}; }
// All bits of those numbers that are equal.
VECTOR_INLINE WideNumbers is_equal(WideNumbers a, WideNumbers b) { return {vceqq_u64(a.low, b.low), vceqq_u64(a.high, b.high)}; }
VECTOR_INLINE uint64_t or_of_all(WideNumbers a) {
    const uint64x2_t two = vorrq_u64(a.low, a.high);
    return vgetq_lane_u64(two, 0) | vgetq_lane_u64(two, 1);
}

#endif

// Whether all are ASCII.
VECTOR_INLINE bool is_ascii(Bytes a) {
#if GGUFBPE_X86
    return !_mm256_movemask_epi8(a.all);
#elif GGUFBPE_WASM
    return !wasm_i8x16_bitmask(wasm_v128_or(a.low, a.high));
#else
    return vmaxvq_u8(vorrq_u8(a.low, a.high)) < 0x80;
#endif
}

}  // namespace ggufbpe

#endif
