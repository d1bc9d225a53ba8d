#include "packed_strings.h"

#include <stdexcept>

#include "machine.h"

namespace ggufbpe {

namespace {

uint64_t little_endian(uint64_t number) { return IS_BIG_ENDIAN ? swap_bytes(number) : number; }

}  // namespace

PackedStrings::PackedStrings(const Strings &strings, const Poll &poll) : PackedStrings(size(strings), strings.size()) {
    char *at = bytes_.data();
    Pace pace(poll);
    for (size_t i = 0; i < strings.size(); ++i) {
        const std::string_view text = strings[i];
        pace.count(WIDTH + text.size());
        const uint64_t length = little_endian(text.size());
        std::memcpy(at, &length, WIDTH);
        std::memcpy(at + WIDTH, text.data(), text.size());
        at += WIDTH + text.size();
    }
}

Digest PackedStrings::digest(const Strings &strings, const HashKey &secret, const Poll &poll) {
    constexpr size_t BLOCK = size_t(1) << 15;  // bytes hashed at once
    KeyedHash hash(secret);
    std::string block;
    Pace pace(poll);
    for (size_t i = 0; i < strings.size(); ++i) {
        const std::string_view text = strings[i];
        pace.count(WIDTH + text.size());
        const uint64_t length = little_endian(text.size());
        block.append(reinterpret_cast<const char *>(&length), WIDTH).append(text);
        if (block.size() >= BLOCK) block.erase(0, hash.add_steps(block.data(), block.size()));
    }
    const size_t done = hash.add_steps(block.data(), block.size());
    hash.add_end(block.data() + done, block.size() - done, size(strings));
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
    const Scan found = scan(data(), size(), 0, count(), WIDTH, false, &made, poll);
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
