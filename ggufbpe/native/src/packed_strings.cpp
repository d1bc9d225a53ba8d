#include "packed_strings.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "machine.h"

namespace ggufbpe {

namespace {

constexpr size_t LENGTH_BYTES = 8;  // of the length before each string

// Writes a string after its length; returns where it ends.
char *write_packed(std::string_view text, char *to) {
    const uint64_t length = IS_BIG_ENDIAN ? swap_bytes(text.size()) : text.size();
    std::memcpy(to, &length, LENGTH_BYTES);
    std::memcpy(to + LENGTH_BYTES, text.data(), text.size());
    return to + LENGTH_BYTES + text.size();
}

}  // namespace

PackedStrings::PackedStrings(const Strings &strings, const Poll &poll) : PackedStrings(size(strings), strings.size()) {
    char *at = bytes_.data();
    Pace pace(poll);
    for (size_t i = 0; i < strings.size(); ++i) {
        const std::string_view text = strings[i];
        pace.count(LENGTH_BYTES + text.size());
        at = write_packed(text, at);
    }
}

size_t PackedStrings::size(const Strings &strings) { return strings.byte_size() + LENGTH_BYTES * strings.size(); }

Digest PackedStrings::digest(const Strings &strings, const HashKey &secret, const Poll &poll) {
    constexpr size_t BLOCK = size_t(1) << 15;  // bytes hashed at once
    KeyedHash hash(secret);
    std::vector<char> block(BLOCK);
    size_t kept = 0;  // bytes in the block
    const auto add_kept = [&] {
        const size_t done = hash.add_steps(block.data(), kept);
        kept -= done;
        std::memmove(block.data(), block.data() + done, kept);
    };
    Pace pace(poll);
    for (size_t i = 0; i < strings.size(); ++i) {
        const std::string_view text = strings[i];
        pace.count(LENGTH_BYTES + text.size());
        if (LENGTH_BYTES + text.size() > block.size() - kept) {
            add_kept();
            block.resize(std::max(block.size(), kept + LENGTH_BYTES + text.size()));
        }
        kept = static_cast<size_t>(write_packed(text, block.data() + kept) - block.data());
    }
    add_kept();
    hash.add_end(block.data(), kept, size(strings));
    return hash.digest();
}

std::shared_ptr<const PackedStrings> PackedStrings::read(int descriptor, uint64_t offset, size_t size, uint64_t count,
                                                         const HashKey &secret, Digest &digest) {
    std::shared_ptr<PackedStrings> made(new PackedStrings(size, count));
    KeyedHash hash(secret);
    if (!read_all(descriptor, offset, made->bytes_.data(), size, 0, hash)) return nullptr;
    digest = hash.digest();
    return made;
}

Digest PackedStrings::digest(const HashKey &secret) const {
    KeyedHash hash(secret);
    hash.add(data(), size());
    return hash.digest();
}

Strings PackedStrings::strings(const Poll &poll) const {
    Strings made;
    const Scan found = scan(data(), size(), 0, count(), LENGTH_BYTES, false, &made, poll);
    if (found.outcome != Scan::Outcome::ok || !found.plain) throw std::runtime_error("strings that are not sound");
    return made;
}

std::string KnownStrings::write(const Strings &strings, const Digest &digest, const HashKey &secret, const Digest &key) {
    const bool has_strings = strings.indexed() && strings.are_different();
    const Facts facts{digest, PackedStrings::size(strings), strings.size(), has_strings};
    TableWriter writer;
    writer.add(&facts, 1);
    if (has_strings) strings.write(writer);
    return writer.finish(secret, key);
}

KnownStrings::KnownStrings(std::shared_ptr<const TableFile> file)
    : reader_(std::move(file)), facts_(*reader_.array_of<Facts>(1)) {}

std::shared_ptr<const PackedStrings> KnownStrings::read(int descriptor, uint64_t offset, uint64_t left, uint64_t count,
                                                        const HashKey &secret) const {
    if (count != facts_.count || facts_.size > left) return nullptr;
    Digest found_digest;
    const auto found = PackedStrings::read(descriptor, offset, static_cast<size_t>(facts_.size), count, secret, found_digest);
    return found && found_digest == digest() ? found : nullptr;
}

Strings KnownStrings::strings() const {
    TableReader reader = reader_;  // behind the facts, each time
    return Strings(reader);
}

}  // namespace ggufbpe
