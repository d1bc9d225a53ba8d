// Arrays of strings whose bytes lie: scan() at every offset, the table of strings, and files that know strings again.

#include <stdio.h>

#include <map>

#include "entries.h"
#include "packed_strings.h"
#include "string_array.h"

using namespace ggufbpe;

namespace {

std::string length_bytes(uint64_t length, int width, bool big_endian) {
    std::string bytes;
    for (int i = 0; i < width; ++i) bytes += static_cast<char>(length >> (8 * (big_endian ? width - 1 - i : i)));
    return bytes;
}

// What scan() has to say, read byte by byte.
struct Expected {
    Scan::Outcome outcome = Scan::Outcome::ok;
    uint64_t index = 0, position = 0;
    bool plain = true;
    std::vector<std::string> strings;
};

Expected expected_scan(const std::string &file, uint64_t position, uint64_t count, int width, bool big_endian) {
    Expected result;
    for (uint64_t i = 0; i < count; ++i) {
        result.index = i;
        result.position = position;
        if (position > file.size() || file.size() - position < uint64_t(width)) {
            result.outcome = Scan::Outcome::truncated;
            return result;
        }
        uint64_t length = 0;
        for (int k = 0; k < width; ++k) {
            const uint64_t byte = static_cast<unsigned char>(file[position + uint64_t(k)]);
            length |= byte << (8 * (big_endian ? width - 1 - k : k));
        }
        if (length > file.size() - position - uint64_t(width)) {
            result.outcome = Scan::Outcome::too_long;
            return result;
        }
        result.strings.push_back(file.substr(position + uint64_t(width), length));
        const std::string &text = result.strings.back();
        result.plain = result.plain && model::is_utf8(text) && text.find('\0') == std::string::npos;
        position += uint64_t(width) + length;
    }
    result.index = count;
    result.position = position;
    return result;
}

void compare(const std::string &file, uint64_t position, uint64_t count, int width, bool big_endian) {
    const Expected expected = expected_scan(file, position, count, width, big_endian);
    const Exact exact(file, position % 8);
    const char *data = reinterpret_cast<const char *>(exact.data());
    const Scan walked = scan(data, file.size(), position, count, width, big_endian, nullptr);
    CHECK(walked.outcome == expected.outcome && walked.position == expected.position && walked.index == expected.index);
    Strings strings;
    const Scan found = scan(data, file.size(), position, count, width, big_endian, &strings);
    CHECK(found.outcome == expected.outcome && found.position == expected.position && found.index == expected.index);
    if (found.outcome != Scan::Outcome::ok) return;
    CHECK(found.plain == expected.plain);
    if (!found.plain) return;
    CHECK(strings.size() == expected.strings.size());
    std::map<std::string, int64_t> first;
    int64_t duplicate = -1;
    for (size_t i = 0; i < strings.size(); ++i) {
        CHECK(strings[i] == expected.strings[i]);
        if (!first.emplace(expected.strings[i], i).second && duplicate < 0) duplicate = static_cast<int64_t>(i);
    }
    CHECK(strings.index() == duplicate);
    for (const auto &[text, index] : first) {
        CHECK(strings.find(text) == index);
        const std::string other = text + "x";
        CHECK(strings.find(other) == (first.count(other) ? first[other] : -1));
    }
}

// A file with this content, which is gone when it is closed.
class OpenFile {
public:
    explicit OpenFile(const std::string &content) : file_(tmpfile()) {
        CHECK(file_ && fwrite(content.data(), 1, content.size(), file_) == content.size() && !fflush(file_));
    }
    ~OpenFile() { fclose(file_); }
    int descriptor() const { return fileno(file_); }

private:
    FILE *const file_;
};

std::string with_another_bit(std::string bytes, size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << at % 8);
    return bytes;
}

// An array that was read before: known again in a file that has it, and in no file that has another one.
void compare_known(const std::string &file, uint64_t position, uint64_t count, bool has_index, Choices &choices) {
    Strings strings;
    const Scan found = scan(file.data(), file.size(), position, count, 8, false, &strings);
    if (found.outcome != Scan::Outcome::ok || !found.plain) return;
    if (has_index) strings.index();
    HashKey secret;  // of small numbers, it would be easy to guess
    for (size_t i = 0; i < secret.size(); ++i) secret[i] = 0x9E3779B97F4A7C15u * (100 * i + choices.below(100) + 1);
    const Digest key{secret[0] + 1, secret[1] + 1};
    const Digest digest = PackedStrings::digest(strings, secret, NO_POLL);
    const std::string kept = KnownStrings::write(strings, digest, secret, key);
    CHECK(!TableFile::read(OpenFile(with_another_bit(kept, choices.below(kept.size()))).descriptor(), kept.size(), secret, key));
    const auto table = TableFile::read(OpenFile(kept).descriptor(), kept.size(), secret, key);
    CHECK(table);
    const KnownStrings known(table);
    const auto read = [&](const std::string &model, uint64_t asked) {
        return known.read(OpenFile(model).descriptor(), position, model.size() - position, asked, secret);
    };
    const auto packed = read(file, count);
    CHECK(packed && packed->size() == found.position - position && packed->strings(NO_POLL) == strings);
    CHECK(packed->digest(secret) == known.digest() && PackedStrings(strings, NO_POLL).digest(secret) == digest);
    CHECK(!read(file, count + 1));
    if (packed->size()) {
        const size_t at = static_cast<size_t>(position) + choices.below(packed->size());
        CHECK(!read(with_another_bit(file, at), count) && !read(file.substr(0, at), count));
    }
    CHECK(known.has_strings() == (has_index && strings.are_different()));
    if (!known.has_strings()) return;
    const Strings made = known.strings();
    CHECK(made == strings && made.indexed());
    for (size_t i = 0; i < made.size(); ++i) CHECK(made.find(strings[i]) == static_cast<int64_t>(i));
    CHECK(made.find("no string") == Strings::NOT_FOUND);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Choices choices(data, size);
    const int width = choices.one_in(2) ? 8 : 4;
    const bool big_endian = choices.one_in(3), lies = choices.one_in(2);
    const uint64_t count = choices.below(30);
    std::string file(choices.below(20), 'x');
    const uint64_t position = file.size();
    for (uint64_t i = 0; i < count; ++i) {
        std::string text;
        for (size_t k = choices.one_in(6) ? choices.below(70) : choices.below(8); k > 0; --k) {
            append_utf8(text, choices.one_in(4) ? choices.of(characters()) : 'a' + static_cast<uint32_t>(choices.below(3)));
        }
        if (choices.one_in(40) && !text.empty()) text.resize(text.size() - 1);
        if (choices.one_in(40)) text += static_cast<char>(choices.byte());
        uint64_t length = text.size();
        if (lies && choices.one_in(20)) length += choices.below(20);
        if (lies && choices.one_in(20)) length -= choices.below(20);
        if (lies && choices.one_in(20)) length = UINT64_MAX << choices.below(64);
        file += length_bytes(length, width, big_endian) + text;
    }
    if (choices.one_in(3)) file += std::string(choices.below(20), 'y');
    if (lies && choices.one_in(2)) file.resize(choices.below(file.size() + 1));
    compare(file, position, count, width, big_endian);
    compare(file, position, count + choices.below(3), width, big_endian);
    static const std::vector<uint64_t> LARGE = {UINT64_MAX, uint64_t(1) << 63, uint64_t(1) << 60, uint64_t(1) << 32, 1000};
    compare(file, choices.one_in(4) ? choices.of(LARGE) : choices.below(file.size() + 9), choices.of(LARGE), width, big_endian);
    if (choices.one_in(8)) compare_known(file, position, count, choices.one_in(2), choices);
    if (choices.one_in(4)) {
        for (uint64_t at = 0; at <= file.size() + 1; ++at) compare(file, at, choices.below(4), width, big_endian);
    }
    return 0;
}
