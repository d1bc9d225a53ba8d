#include "library/table_cache.h"

#if !defined(_WIN32) && !defined(__wasm__)

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>
#include <random>
#include <tuple>
#include <vector>

namespace ggufbpe {

namespace {

constexpr uint64_t MOST_BYTES = 256 << 20;  // of all files, unless GGUFBPE_CACHE_BYTES says less
constexpr time_t USED_LATELY = 3600;        // seconds in which a file is not marked as used once more
constexpr time_t ABANDONED = 24 * 3600;     // seconds after which an unfinished file is deleted
constexpr const char *TABLES = ".tables", *STRINGS = ".strings", *UNFINISHED = ".partial";

// An open file, or none.
class OpenFile {
public:
    explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
    ~OpenFile() {
        if (descriptor_ >= 0) close(descriptor_);
    }
    OpenFile(const OpenFile &) = delete;
    OpenFile &operator=(const OpenFile &) = delete;
    int descriptor() const { return descriptor_; }

private:
    const int descriptor_;
};

// Whether a regular file is open, and what is known of it.
bool is_regular(const OpenFile &file, struct stat &status) {
    return file.descriptor() >= 0 && !fstat(file.descriptor(), &status) && S_ISREG(status.st_mode);
}

int open_unlinked(const std::string &path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW); }

// Whether a file may have so many bytes. Writing more would send a signal that ends the process.
bool may_have(size_t size) {
    struct rlimit limit {};
    return getrlimit(RLIMIT_FSIZE, &limit) || size <= limit.rlim_cur;
}

bool write_all(int descriptor, const char *data, size_t size) {
    while (size) {
        const ssize_t count = write(descriptor, data, size);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        data += count;
        size -= static_cast<size_t>(count);
    }
    return true;
}

std::string in_hex(const void *data, size_t size) {
    std::string text;
    for (size_t i = 0; i < size; ++i) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char *>(data)[i]);
        text += digits;
    }
    return text;
}

// Writes a file that only the user can read, and gives it its name when it is whole. Without `replaces`, a file that has the
// name already stays.
bool write_whole(const std::string &folder, const std::string &name, const void *data, size_t size, bool replaces) {
    if (!may_have(size)) return false;
    const uint32_t number = std::random_device()();
    const std::string path = folder + "/" + name;
    const std::string unfinished = folder + "/." + name.substr(0, 50) + "." + in_hex(&number, sizeof number) + UNFINISHED;
    bool is_whole = false;
    {
        const OpenFile file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (file.descriptor() < 0) return false;
        is_whole = write_all(file.descriptor(), static_cast<const char *>(data), size);
    }
    if (is_whole && replaces) is_whole = !rename(unfinished.c_str(), path.c_str());
    if (is_whole && !replaces) is_whole = !link(unfinished.c_str(), path.c_str());
    if (!is_whole || !replaces) unlink(unfinished.c_str());
    return is_whole;
}

bool make_folders(const std::string &path) {
    for (size_t end = 0; end != std::string::npos;) {
        end = path.find('/', end + 1);
        const bool is_last = end == std::string::npos;
        if (mkdir(path.substr(0, end).c_str(), is_last ? 0700 : 0777) && errno != EEXIST) return false;
    }
    return true;
}

// What a variable says, "" if nothing.
std::string said(const char *variable) {
    const char *const text = std::getenv(variable);
    return text ? text : "";
}

// The user's cache folder, as ggufbpe/_util/cache_folder.py finds it; "" if no home is known.
std::string cache_folder() {
    std::string found = said("GGUFBPE_CACHE_DIR");
    if (found.empty()) {
#if defined(__APPLE__)
        found = "~/Library/Caches/ggufbpe";
#else
        const std::string of_all = said("XDG_CACHE_HOME");
        found = (of_all[0] == '/' ? of_all : "~/.cache") + "/ggufbpe";  // not a relative one, as its specification asks
#endif
    }
    if (found[0] != '~') return found;
    const std::string home = said("HOME");
    return home.empty() || (found.size() > 1 && found[1] != '/') ? "" : home + found.substr(1);
}

uint64_t most_bytes() {
    const std::string bytes = said("GGUFBPE_CACHE_BYTES");
    const bool is_number = !bytes.empty() && bytes.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::min<uint64_t>(MOST_BYTES, std::strtoull(bytes.c_str(), nullptr, 10)) : MOST_BYTES;
}

// The secret of a folder; false if there is none, or somebody else may have written it.
bool read_secret(const std::string &path, HashKey &secret) {
    struct stat status {};
    const OpenFile file(open_unlinked(path));
    if (!is_regular(file, status) || status.st_uid != geteuid() || status.st_mode & 077) return false;
    const auto size = static_cast<off_t>(sizeof secret);
    if (status.st_size == size && pread(file.descriptor(), secret.data(), sizeof secret, 0) == size) return true;
    unlink(path.c_str());  // the machine went down while it was written
    return false;
}

bool make_secret(const std::string &folder, HashKey &secret) {
    std::random_device random;
    for (uint64_t &number : secret) number = uint64_t(random()) << 32 | random();
    return make_folders(folder) && write_whole(folder, "secret", secret.data(), sizeof secret, false);
}

bool ends_in(const std::string &name, const std::string &ending) {
    return name.size() >= ending.size() && !name.compare(name.size() - ending.size(), ending.size(), ending);
}

// Deletes what is unfinished for long, and the least recently used files until the rest has `most` bytes; not `spared`.
void evict(const std::string &folder, uint64_t most, const std::string &spared) {
    const std::unique_ptr<DIR, int (*)(DIR *)> names(opendir(folder.c_str()), closedir);
    if (!names) return;
    const time_t now = std::time(nullptr);
    std::vector<std::tuple<time_t, uint64_t, std::string>> files;
    uint64_t total = 0;
    while (const dirent *entry = readdir(names.get())) {
        const std::string name = entry->d_name, path = folder + "/" + name;
        struct stat status {};
        if (lstat(path.c_str(), &status)) continue;  // another process deleted it
        if (ends_in(name, UNFINISHED) && status.st_mtime + ABANDONED < now) unlink(path.c_str());
        if (!ends_in(name, TABLES) && !ends_in(name, STRINGS)) continue;
        files.emplace_back(status.st_mtime, static_cast<uint64_t>(status.st_size), path);
        total += static_cast<uint64_t>(status.st_size);
    }
    std::sort(files.begin(), files.end());
    for (const auto &[used, size, path] : files) {
        if (total <= most) break;
        if (path == spared) continue;
        unlink(path.c_str());
        total -= size;
    }
}

}  // namespace

std::unique_ptr<const TableCache> TableCache::of_user() {
    const uint64_t most = most_bytes();
    const std::string folder = cache_folder();
    if (said("GGUFBPE_CACHE") == "off" || !most || folder.empty()) return nullptr;
    const std::string tables = folder + "/tables", path = tables + "/secret";
    HashKey secret;
    try {
        if (!read_secret(path, secret) && !make_secret(tables, secret) && !read_secret(path, secret)) return nullptr;
    } catch (const std::exception &) {  // a system without random numbers
        return nullptr;
    }
    return std::unique_ptr<const TableCache>(new TableCache(tables, secret, most));
}

std::string TableCache::path_of(const Digest &key) const { return folder_ + "/" + in_hex(key.data(), sizeof key) + TABLES; }

std::shared_ptr<const TableFile> TableCache::read(const Digest &key) const {
    struct stat status {};
    const std::string path = path_of(key);
    const OpenFile file(open_unlinked(path));
    if (!is_regular(file, status) || static_cast<uint64_t>(status.st_size) > MOST_BYTES) return nullptr;
    try {
        const auto tables = TableFile::read(file.descriptor(), static_cast<size_t>(status.st_size), secret_, key);
        if (tables && status.st_mtime + USED_LATELY < std::time(nullptr)) futimens(file.descriptor(), nullptr);
        return tables;
    } catch (const std::bad_alloc &) {  // whatever lies there, as much as it may be
        return nullptr;
    }
}

void TableCache::keep(const Digest &key, const BPEModel &model) const {
    try {
        TableWriter writer;
        model.write(writer);
        const std::string content = writer.finish(secret_, key), path = path_of(key);
        if (content.size() > most_) return;
        const std::string name = path.substr(folder_.size() + 1);
        if (write_whole(folder_, name, content.data(), content.size(), true)) evict(folder_, most_, path);
    } catch (const std::exception &) {  // too little memory for a copy, or a system without random numbers
    }
}

}  // namespace ggufbpe

#else

namespace ggufbpe {

std::unique_ptr<const TableCache> TableCache::of_user() { return nullptr; }
std::shared_ptr<const TableFile> TableCache::read(const Digest &) const { return nullptr; }
void TableCache::keep(const Digest &, const BPEModel &) const {}

}  // namespace ggufbpe

#endif
