// Huge pages that are given back and taken again: nobody gets what another one has, no more are kept than should be, and none are
// asked for while they come slowly.
//
//     program: nothing to choose; ends with an error where something is wrong

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <new>
#include <string>
#include <thread>

#include "harness.h"
#include "ids.h"
#include "memory.h"

using namespace ggufbpe;

namespace {

constexpr size_t PAGE = HugePages::PAGE;

// A number that is written all over a mapping while it is taken.
void mark(const HugePages::Mapping &mapping, uint64_t number) {
    for (size_t at = 0; at < mapping.bytes; at += 4096) std::memcpy(static_cast<char *>(mapping.data) + at, &number, 8);
}

bool has(const HugePages::Mapping &mapping, uint64_t number) {
    for (size_t at = 0; at < mapping.bytes; at += 4096) {
        if (std::memcmp(static_cast<char *>(mapping.data) + at, &number, 8)) return false;
    }
    return true;
}

HugePages::Mapping taken(size_t bytes, bool is_expected_new) {
    bool is_new;
    const HugePages::Mapping mapping = HugePages::take(bytes, is_new);
    CHECK(is_new == is_expected_new);
    CHECK(mapping.bytes >= bytes && reinterpret_cast<uintptr_t>(mapping.data) % PAGE == 0);
    if (is_new) CHECK(has(mapping, 0));
    return mapping;
}

// What was used last is kept; the smallest that has room is given, if it is not much too large, else the largest, which grows.
void check_what_is_kept() {
    static_assert(HugePages::KEPT == 8 * PAGE, "the sizes below are of 8 pages");
    const HugePages::Mapping small = taken(3 * PAGE, true), large = taken(4 * PAGE, true);
    HugePages::give_back(large);
    HugePages::give_back(small);
    HugePages::give_back(taken(2 * PAGE, false));  // small
    CHECK(taken(4 * PAGE, false).data == large.data);
    CHECK(taken(3 * PAGE, false).data == small.data);
    HugePages::give_back(small);
    const HugePages::Mapping much_smaller = taken(PAGE, true);  // 3 are more than half as much again
    HugePages::give_back(much_smaller);
    mark(small, 7);
    const HugePages::Mapping other = taken(4 * PAGE, false);  // small, grown
    CHECK(other.bytes == 4 * PAGE && has({other.data, 3 * PAGE}, 7));
    HugePages::give_back(large);
    HugePages::give_back(taken(HugePages::KEPT + 1, true));  // more than may be kept: the others stay
    CHECK(taken(4 * PAGE, false).data == large.data);
    HugePages::give_back(large);
    HugePages::give_back(other);  // the oldest two go
    CHECK(taken(4 * PAGE, false).data == other.data);
    CHECK(taken(4 * PAGE, false).data == large.data);
    const HugePages::Mapping one = taken(PAGE, true);
    HugePages::give_back(other);
    HugePages::give_back(large);
    HugePages::give_back(one);  // the other one is the oldest now
    CHECK(taken(4 * PAGE, false).data == large.data);
    HugePages::give_back(taken(4 * PAGE, true));
    HugePages::give_back(large);
}

// Ids outgrow the room that is reserved for them, and more is reserved than they need. What is kept is what they used,
// and ids for which far more is reserved take it again.
void check_ids_are_kept() {
    const size_t count = HugePages::KEPT / sizeof(int32_t) * 7 / 8;
    for (const bool is_shrunk : {true, false}) {
        for (const size_t reserved : {count * 3 / 4, count * 6}) {
            HugePages::release();
            {
                Ids ids;
                ids.reserve(reserved, false);
                for (size_t i = 0; i < count; ++i) ids.push(static_cast<int32_t>(i));
                if (is_shrunk) ids.shrink();
            }
            bool is_new;
            HugePages::give_back(HugePages::take(count * 6 * sizeof(int32_t), is_new, HugePages::Use::written_once));
            CHECK(!is_new);
        }
    }
}

// What the system was asked for: 'h' for huge pages, 'n' for small ones, '?' where it does not say.
char asked_for(const void *data) {
    std::ifstream maps("/proc/self/smaps");
    bool is_here = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long long begin, end;
        if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) {
            const auto address = reinterpret_cast<uintptr_t>(data);
            is_here = begin <= address && address < end;
        } else if (is_here && line.rfind("VmFlags:", 0) == 0) {
            return line.find(" hg") != std::string::npos ? 'h' : line.find(" nh") != std::string::npos ? 'n' : '?';
        }
    }
    return '?';
}

void wait_until_quick() {
    while (!HugePages::come_quickly()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// A system without huge pages says nothing, nor does an emulator; then only what is in the memory is checked.
bool says_what_was_asked_for() {
    wait_until_quick();
    bool is_new;
    const HugePages::Mapping table = HugePages::take(PAGE, is_new);
    const bool says = asked_for(table.data) == 'h' || !HugePages::come_quickly();
    HugePages::give_back(table);
    return says;
}

std::string asked_for_table_few_and_many() {
    HugePages::release();
    std::string asked;
    for (const size_t pages : {0, 1, 4}) {
        bool is_new;
        const HugePages::Mapping one = pages ? HugePages::take(pages * PAGE, is_new, HugePages::Use::written_once) : HugePages::take(PAGE, is_new);
        asked += asked_for(one.data);
        HugePages::give_back(one);
        HugePages::release();
    }
    return asked;
}

// When huge pages come slowly none are asked for, until a while later, also where kept memory grows; ids that get small pages
// midway are as they were.
void check_slow_pages() {
    constexpr size_t COUNT = 9 * PAGE / sizeof(int32_t);
    const bool says = says_what_was_asked_for();
    if (!says) std::puts("memory: the system does not say which pages it was asked for");
    const auto was_asked = [&](const std::string &seen, const std::string &expected, bool are_quick) {
        return !says || seen == expected || HugePages::come_quickly() != are_quick;  // the system itself may be slow
    };
    const auto begun = std::chrono::steady_clock::now();
    HugePages::note_time(std::chrono::seconds(2));
    CHECK(!HugePages::come_quickly() || std::chrono::steady_clock::now() - begun >= std::chrono::seconds(1));
    for (int turn = 0; turn < 2; ++turn) {
        wait_until_quick();
        CHECK(was_asked(asked_for_table_few_and_many(), "hnh", true));
        if (turn) break;
        bool is_new;
        HugePages::give_back(HugePages::take(2 * PAGE, is_new));
        HugePages::note_time(std::chrono::seconds(2));
        const HugePages::Mapping grown = HugePages::take(3 * PAGE, is_new);
        CHECK(!is_new && was_asked({asked_for(grown.data)}, "n", false));
        HugePages::give_back(grown);
        CHECK(was_asked(asked_for_table_few_and_many(), "nnn", false));
    }
    wait_until_quick();
    Ids ids;
    ids.reserve(COUNT / 2, false);
    for (size_t i = 0; i < COUNT; ++i) {
        if (i == COUNT / 4) HugePages::note_time(std::chrono::seconds(2));
        ids.push(static_cast<int32_t>(i));
    }
    CHECK(was_asked({asked_for(ids.data())}, "n", false));
    for (size_t i = 0; i < COUNT; ++i) CHECK(ids.data()[i] == static_cast<int32_t>(i));
}

// Few ids of a text for which many were reserved leave the pages, of which even one may be far more than they need.
void check_few_ids_of_many() {
    for (const bool in_parallel : {false, true}) {
        for (const size_t count : {size_t(1000), HugePages::WORTH_IT / sizeof(int32_t) * 9 / 10}) {
            wait_until_quick();
            HugePages::release();
            Ids ids;
            ids.reserve(4 * PAGE / sizeof(int32_t), in_parallel);
            for (size_t i = 0; i < count; ++i) ids.push(static_cast<int32_t>(i));
            ids.shrink();
            CHECK(ids.bytes() == count * sizeof(int32_t));
            for (size_t i = 0; i < count; ++i) CHECK(ids.data()[i] == static_cast<int32_t>(i));
            bool is_new;
            HugePages::give_back(HugePages::take(PAGE, is_new));
            CHECK(!is_new);  // what they had used was given back
        }
    }
}

void check_at_random(uint64_t seed) {
    Random random(seed);
    std::vector<std::pair<HugePages::Mapping, uint64_t>> in_use;
    for (uint64_t turn = 1; turn <= 2000; ++turn) {
        if (in_use.size() < 12 && random.below(2)) {
            bool is_new;
            const HugePages::Mapping mapping = HugePages::take(1 + random.below(random.below(8) ? 4 * PAGE : 64 * PAGE), is_new);
            mark(mapping, turn);
            in_use.emplace_back(mapping, turn);
        } else if (!in_use.empty()) {
            std::swap(in_use[random.below(in_use.size())], in_use.back());
            CHECK(has(in_use.back().first, in_use.back().second));
            HugePages::give_back(in_use.back().first);
            in_use.pop_back();
        }
    }
    for (const auto &[mapping, number] : in_use) {
        CHECK(has(mapping, number));
        HugePages::give_back(mapping);
    }
}

// An array is of zeros although its memory was written before; ids keep what is in them while they grow and shrink.
void check_users() {
    for (int turn = 0; turn < 3; ++turn) {
        ZeroedArray<uint64_t> array(3 * PAGE / 8);
        CHECK(std::all_of(array.data(), array.data() + array.size(), [](uint64_t number) { return number == 0; }));
        std::fill(array.data(), array.data() + array.size(), ~uint64_t(0));
    }
    for (size_t count : {size_t(1000), 3 * PAGE / 4, 9 * PAGE / 4, HugePages::KEPT / 4 + 1000}) {
        Ids ids;
        for (size_t i = 0; i < count; ++i) ids.push(static_cast<int32_t>(i));
        ids.shrink();
        CHECK(ids.size() == count);
        for (size_t i = 0; i < count; ++i) CHECK(ids.data()[i] == static_cast<int32_t>(i));
    }
}

template <typename Take>
bool is_refused(Take take) {
    try {
        take();
        return false;
    } catch (const std::bad_alloc &) {
        return true;
    }
}

// Leaves something where the next call has its variables: what would pass for the place and the size of a mapping.
void fill_stack() {
    volatile uint64_t numbers[1 << 13];
    for (volatile uint64_t &number : numbers) number = PAGE;
}
void (*volatile const call_fill_stack)() = fill_stack;  // not inlined, so that the next call has its place on the stack

// Ids for which the system has no memory give nothing back that they never had.
void check_that_nothing_comes_of_a_refusal() {
    HugePages::release();
    for (int i = 0; i < 3; ++i) {
        call_fill_stack();
        CHECK(is_refused([&] { Ids().reserve(SIZE_MAX >> (4 + i), false); }));
    }
    HugePages::give_back(taken(PAGE, true));
}

// Of a size that a size_t cannot hold, what is left of it would be far too little.
void check_impossible_sizes() {
    CHECK(is_refused([] { ZeroedArray<uint32_t>(SIZE_MAX / 4 + 2); }));
    CHECK(is_refused([] { Buffer<uint32_t>().room(SIZE_MAX / 36 * 8 + 16); }));  // which takes an eighth more
    CHECK(is_refused([] { LargePages<uint32_t>().allocate(SIZE_MAX / 4 + 2); }));
}

}  // namespace

int main() {
#if defined(__linux__)
    check_what_is_kept();
    check_ids_are_kept();
    check_slow_pages();
    check_few_ids_of_many();
    for (uint64_t seed = 1; seed <= 3; ++seed) check_at_random(seed);
#endif
    check_users();
    check_that_nothing_comes_of_a_refusal();
    check_impossible_sizes();
    std::puts("memory: taken, given back, and taken again");
}
