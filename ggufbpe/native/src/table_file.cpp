#include "table_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

namespace ggufbpe {

bool read_all(int descriptor, uint64_t offset, char *to, size_t size, size_t unhashed, KeyedHash &hash) {
    constexpr size_t AT_ONCE = size_t(1) << 17;  // bytes, which are hashed while they are in the processor's cache
#if defined(_WIN32)
    if (_lseeki64(descriptor, static_cast<__int64>(offset), SEEK_SET) < 0) return false;
#endif
    size_t hashed = 0;  // behind `unhashed`
    for (size_t done = 0; done < size;) {
        const size_t wanted = std::min(size - done, AT_ONCE);
#if defined(_WIN32)
        const auto got = _read(descriptor, to + done, static_cast<unsigned>(wanted));
#else
        const auto got = ::pread(descriptor, to + done, wanted, static_cast<off_t>(offset + done));
#endif
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<size_t>(got);
        if (done > unhashed) hashed += hash.add_steps(to + unhashed + hashed, done - unhashed - hashed);
    }
    hash.add_end(to + unhashed + hashed, size - unhashed - hashed, size - unhashed);
    return true;
}

std::string TableWriter::finish(const HashKey &secret, const Digest &key) {
    TableFileHead head;
    head.key = key;
    std::memcpy(head.form, TableFileHead::FORM, sizeof head.form);
    std::memcpy(&content_[0], &head, sizeof head);
    KeyedHash checksum(secret);
    checksum.add(content_.data() + sizeof(Digest), content_.size() - sizeof(Digest));
    head.checksum = checksum.digest();
    std::memcpy(&content_[0], &head, sizeof head);
    return std::move(content_);
}

std::shared_ptr<const TableFile> TableFile::read(int descriptor, size_t size, const HashKey &secret, const Digest &key) {
    TableFileHead head;
    if (size < sizeof head || size % TABLE_ALIGNMENT) return nullptr;
    auto file = std::make_shared<TableFile>();
    file->size_ = size;
    char *content = file->content_.room(size);
    KeyedHash checksum(secret);
    if (!read_all(descriptor, 0, content, size, sizeof head.checksum, checksum)) return nullptr;
    std::memcpy(&head, content, sizeof head);
    if (std::memcmp(head.form, TableFileHead::FORM, sizeof head.form) || head.key != key) return nullptr;
    return head.checksum == checksum.digest() ? file : nullptr;
}

}  // namespace ggufbpe
