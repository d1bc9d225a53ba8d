#include "gguf/section.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_set>

#include "gguf/value_types.h"
#include "machine.h"
#include "utf8.h"
#include "vocabulary/registry.h"

namespace ggufbpe {

namespace {

const KeyType *type_of(const std::string &key) {
    for (const KeyType &one : KEY_TYPES) {
        if (key == one.key) return &one;
    }
    return nullptr;
}

bool is_text(std::string_view bytes) { return is_utf8(reinterpret_cast<const unsigned char *>(bytes.data()), bytes.size()); }

std::string until_nul(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

}  // namespace

// Throws unless `size` bytes may follow: an unfinished download if they do not, or a length that lies if it is absurd.
void Section::check_room(uint64_t size, const char *what, const std::string &key, uint64_t count) const {
    const auto problem = [&](const char *why) {
        return std::string(what) + (count ? " of " + std::to_string(count) : "") + " leads past " + why;
    };
    if (size > LONGEST - std::min(at_, LONGEST)) {
        throw LoadError(Fault::corrupt, problem("the most bytes that metadata may have"), at_, key);
    }
    if (size > window_.size() - std::min(at_, window_.size())) {
        throw LoadError(Fault::truncated, problem("the end of the file"), at_, key, at_ + size);
    }
}

// The next bytes, all in memory.
const char *Section::bytes(uint64_t count, const char *what, const std::string &key, uint64_t elements) {
    check_room(count, what, key, elements);
    if (!window_.fill(at_, at_ + count)) check_room(count, what, key, elements);  // now that the size is known
    const uint64_t from = at_;
    at_ += count;
    return window_.at(from);
}

uint64_t Section::number(size_t width, const char *what, const std::string &key) {
    const char *p = bytes(width, what, key);
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) {
        value |= uint64_t(static_cast<unsigned char>(p[i])) << 8 * (big_endian_ ? width - 1 - i : i);
    }
    return value;
}

int32_t Section::type(const char *what, const std::string &key) {
    const uint64_t place = at_, found = number(4, what, key);
    if (found < VALUE_TYPES) return static_cast<int32_t>(found);
    throw LoadError(Fault::corrupt, std::string(what) + " " + std::to_string(found) + " does not exist", place, key);
}

std::string Section::text(uint64_t size, const char *what, const std::string &key) {
    const uint64_t place = at_;
    std::string found(bytes(size, what, key, size), static_cast<size_t>(size));
    if (!is_text(found)) throw LoadError(Fault::corrupt, std::string(what) + " is not UTF-8", place, key);
    return found;
}

// Returns the number of keys.
uint64_t Section::read_header() {
    if (!window_.fill(0, 4) || std::memcmp(window_.at(0), "GGUF", 4)) {
        if (window_.end() < 4 && !std::memcmp(window_.at(0), "GGUF", static_cast<size_t>(window_.end()))) {
            throw LoadError(Fault::truncated, "the file ends within its first four bytes", 0, {}, 8);
        }
        throw LoadError(Fault::not_gguf, "not a GGUF file", 0);
    }
    at_ = 4;
    uint64_t version = number(4, "the version number", {});
    if (version && !(version & 0xFFFF)) {  // no version is that high: the byte order is reversed
        big_endian_ = true;
        at_ = 4;
        version = number(4, "the version number", {});
    }
    if (version < 1 || version > 3) {
        throw LoadError(Fault::unsupported, "GGUF version " + std::to_string(version) + "; versions 1, 2 and 3 are known", 4);
    }
    width_ = version == 1 ? 4 : 8;
    if (length("the number of tensors", {}) >= uint64_t(1) << 63) throw LoadError(Fault::corrupt, "too many tensors", 8);
    const uint64_t place = at_, keys = length("the number of keys", {});
    const uint64_t smallest = width_ + 1 + 4 + 1;  // a key of one letter with a value of one byte
    if (keys >= uint64_t(1) << 29) throw LoadError(Fault::corrupt, "claims " + std::to_string(keys) + " keys", place);
    check_room(keys * smallest, "the number of keys", {}, keys);
    return keys;
}

Section::Values Section::read() {
    Values values;
    std::unordered_set<std::string, TextHash> seen;
    const uint64_t keys = read_header();
    Pace pace(poll_);
    for (uint64_t index = 0; index < keys; ++index) {
        pace.count(256);
        const uint64_t place = at_, size = length("the length of a key", {});
        const std::string key = text(size, "a key", {});
        if (key.empty()) throw LoadError(Fault::corrupt, "a key is empty", place);
        if (!seen.insert(key).second) throw LoadError(Fault::corrupt, "the key occurs twice", place, key);
        const KeyType *wanted = type_of(key);
        Value value;
        value.type = type("the value type", key);
        value.offset = at_;
        if (value.type == ARRAY) {
            value.element = type("the array element type", key);
            const bool is_right = wanted && wanted->type == ARRAY &&
                                  (value.element == wanted->elements[0] || value.element == wanted->elements[1]);
            read_array(value, is_right, key);
        } else if (value.type == STRING) {
            const uint64_t bytes_of_text = length("the length of a string", key);
            if (wanted && wanted->type == STRING) {
                value.bytes = until_nul(text(bytes_of_text, "a string", key));
            } else {
                check_room(bytes_of_text, "a string", key, bytes_of_text);
                at_ += bytes_of_text;
            }
        } else {
            value.count = 1;
            read_numbers(value, VALUE_SIZES[value.type], key);
        }
        if (wanted) values.emplace(key, std::move(value));
    }
    return values;
}

void Section::read_array(Value &value, bool is_kept, const std::string &key) {
    if (value.element == ARRAY) throw LoadError(Fault::corrupt, "an array of arrays, which GGUF readers refuse", value.offset, key);
    const uint64_t place = at_;
    value.count = length("the number of elements", key);
    const size_t size = value.element == STRING ? width_ : VALUE_SIZES[value.element];
    if (value.count > LONGEST) {
        throw LoadError(Fault::corrupt, "claims an array of " + std::to_string(value.count) + " elements", place, key);
    }
    check_room(value.count * size, "an array", key, value.count);
    if (value.element == STRING) {
        read_strings(value, is_kept, key);
    } else if (is_kept) {
        read_numbers(value, size, key);
    } else {
        at_ += value.count * size;
    }
}

void Section::read_numbers(Value &value, size_t size, const std::string &key) {
    const size_t total = static_cast<size_t>(value.count) * size;
    while (value.bytes.size() < total) {
        const size_t some = std::min<size_t>(total - value.bytes.size(), 1 << 16);  // a whole number of numbers
        value.bytes.append(bytes(some, "a value", key), some);
        poll_();
    }
    if (big_endian_ == IS_BIG_ENDIAN) return;
    for (size_t i = 0; i < total; i += size) std::reverse(&value.bytes[i], &value.bytes[i] + size);
}

void Section::read_strings(Value &value, bool is_kept, const std::string &key) {
    const uint64_t begin = at_;
    std::optional<Scanner> scanner;
    if (is_kept) scanner.emplace(value.count);
    for (uint64_t done = 0; done < value.count;) {
        const uint64_t place = at_, size = length("the length of a string", key), left = value.count - done;
        check_room(size, "a string", key, size);
        if (!is_kept && size > LONG) {
            at_ += size;
            ++done;
            continue;
        }
        // So that at least this one is in memory; if it is not there, the size of the file is known now.
        if (!window_.fill(place, at_ + size)) check_room(size, "a string", key, size);
        const char *data = window_.at(place);
        const uint64_t here = window_.end() - place;
        const int width = static_cast<int>(width_);
        const Scan found = scanner ? scanner->add(data, here, 0, left, width, big_endian_, poll_)
                                   : scan(data, here, 0, left, width, big_endian_, nullptr, poll_);
        done += found.index;
        at_ = place + found.position;
    }
    if (!scanner) return;
    const bool is_plain = scanner->is_plain(poll_);
    value.strings = std::make_shared<Strings>(scanner->take());
    if (!is_plain) value.strings = std::make_shared<Strings>(texts_in(*value.strings, begin, key));
}

// The strings of an array that begins at `begin`, up to their first NUL.
Strings Section::texts_in(const Strings &strings, uint64_t begin, const std::string &key) const {
    Strings texts;
    Pace pace(poll_);
    for (size_t i = 0; i < strings.size(); ++i) {
        const std::string_view text = strings[i];
        begin += width_;
        pace.count(text.size() + 16);
        if (!is_text(text)) throw LoadError(Fault::corrupt, "string " + std::to_string(i) + " is not UTF-8", begin, key);
        texts.add(until_nul(text));
        begin += text.size();
    }
    return texts;
}

}  // namespace ggufbpe
