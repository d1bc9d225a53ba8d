#include "table_file.h"

#include <algorithm>
#include <cerrno>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

namespace ggufbpe {

namespace {

Digest checksum_of(const char *file, size_t size, const HashKey &secret) {
    KeyedHash hash(secret);
    hash.add(file + sizeof(Digest), size - sizeof(Digest));
    return hash.digest();
}

// False if the file ends before, or an error occurs.
bool read_all(int descriptor, char *to, size_t size) {
    constexpr size_t AT_ONCE = size_t(1) << 30;
    while (size) {
        const size_t wanted = std::min(size, AT_ONCE);
#if defined(_WIN32)
        const auto got = _read(descriptor, to, static_cast<unsigned>(wanted));
#else
        const auto got = ::read(descriptor, to, wanted);
#endif
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        size -= static_cast<size_t>(got);
    }
    return true;
}

}  // namespace

std::string TableWriter::finish(const HashKey &secret, const Digest &key) {
    TableFileHead head;
    head.key = key;
    std::memcpy(head.form, TableFileHead::FORM, sizeof head.form);
    std::memcpy(&content_[0], &head, sizeof head);
    head.checksum = checksum_of(content_.data(), content_.size(), secret);
    std::memcpy(&content_[0], &head, sizeof head);
    return std::move(content_);
}

std::shared_ptr<const TableFile> TableFile::read(int descriptor, size_t size, const HashKey &secret, const Digest &key) {
    TableFileHead head;
    if (size < sizeof head || size % TABLE_ALIGNMENT) return nullptr;
    auto file = std::make_shared<TableFile>();
    file->size_ = size;
    char *content = file->content_.room(size);
    if (!read_all(descriptor, content, size)) return nullptr;
    std::memcpy(&head, content, sizeof head);
    if (std::memcmp(head.form, TableFileHead::FORM, sizeof head.form) || head.key != key) return nullptr;
    return head.checksum == checksum_of(content, size, secret) ? file : nullptr;
}

}  // namespace ggufbpe
