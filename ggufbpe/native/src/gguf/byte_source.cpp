#include "gguf/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "gguf/load_error.h"

#if defined(_WIN32)
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace ggufbpe {

namespace {

#if defined(_WIN32)
class File final : public ByteSource {
public:
    explicit File(const std::string &path) {
        const int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.c_str(), -1, nullptr, 0);
        std::wstring name(static_cast<size_t>(std::max(units, 1)), L'\0');
        if (units) MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.c_str(), -1, &name[0], units);
        if (units) {
            handle_ = CreateFileW(name.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
        }
        LARGE_INTEGER size;
        if (handle_ == INVALID_HANDLE_VALUE) throw LoadError(Fault::io, "the file cannot be opened");
        if (!GetFileSizeEx(handle_, &size)) {
            CloseHandle(handle_);
            throw LoadError(Fault::io, "not a regular file");
        }
        size_ = static_cast<uint64_t>(size.QuadPart);
    }
    ~File() override { CloseHandle(handle_); }

    uint64_t size() const override { return size_; }
    size_t read(uint64_t offset, char *to, size_t size) override {
        LARGE_INTEGER place;
        place.QuadPart = static_cast<LONGLONG>(offset);
        DWORD count = 0;
        if (!SetFilePointerEx(handle_, place, nullptr, FILE_BEGIN) ||
            !ReadFile(handle_, to, static_cast<DWORD>(std::min<size_t>(size, 1 << 30)), &count, nullptr)) {
            throw LoadError(Fault::io, "the file cannot be read", offset);
        }
        return count;
    }

private:
    HANDLE handle_ = INVALID_HANDLE_VALUE;
    uint64_t size_ = 0;
};
#else
class File final : public ByteSource {
public:
    explicit File(const std::string &path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
        if (descriptor_ < 0) throw LoadError(Fault::io, std::string("the file cannot be opened: ") + std::strerror(errno));
        struct stat state {};
        if (fstat(descriptor_, &state) || !S_ISREG(state.st_mode)) {
            close(descriptor_);
            throw LoadError(Fault::io, "not a regular file");
        }
        size_ = static_cast<uint64_t>(state.st_size);
    }
    ~File() override { close(descriptor_); }

    uint64_t size() const override { return size_; }
    size_t read(uint64_t offset, char *to, size_t size) override {
        size_t done = 0;
        while (done < size) {
            const ssize_t count = pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) throw LoadError(Fault::io, std::string("the file cannot be read: ") + std::strerror(errno), offset);
            if (count == 0) break;
            done += static_cast<size_t>(count);
        }
        return done;
    }

private:
    int descriptor_;
    uint64_t size_ = 0;
};
#endif

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string &path) { return std::make_unique<File>(path); }

bool ReadWindow::fill(uint64_t position, uint64_t end) {
    if (position >= start_ && end <= this->end()) return true;
    if (end > size_) return false;
    const size_t forgotten = static_cast<size_t>(std::min<uint64_t>(position - start_, used_));
    std::memmove(data_.data(), data_.data() + forgotten, used_ - forgotten);
    used_ -= forgotten;
    start_ += forgotten;
    if (!used_) start_ = position;
    while (end > this->end() && this->end() < size_) {
        const uint64_t wanted = std::min(std::max(end, this->end() + BLOCK), size_) - this->end();
        const size_t count = static_cast<size_t>(std::min<uint64_t>(wanted, 16 * BLOCK));  // what a lying length asks for comes bit by bit
        if (data_.size() < used_ + count) data_.resize(std::max(used_ + count, 2 * data_.size()));
        const size_t done = source_.read(this->end(), data_.data() + used_, count);
        used_ += done;
        if (done < count) size_ = this->end();
    }
    return end <= this->end();
}

}  // namespace ggufbpe
