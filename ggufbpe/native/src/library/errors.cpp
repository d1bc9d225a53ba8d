#include <algorithm>
#include <cstring>
#include <new>

#include "library/handles.h"

namespace ggufbpe {

namespace {

// Copies a text, cut between characters if it is too long. Control characters, which may come from a file, become '?'.
template <size_t SIZE>
void copy(char (&to)[SIZE], const char *text) noexcept {
    size_t size = std::min(std::strlen(text), SIZE - 1);
    while (size && (text[size] & 0xC0) == 0x80) --size;
    for (size_t i = 0; i < size; ++i) {
        const unsigned char byte = static_cast<unsigned char>(text[i]);
        to[i] = byte < 0x20 || byte == 0x7F ? '?' : text[i];
    }
    to[size] = 0;
}

ggufbpe_status status_of(Fault fault) noexcept {
    switch (fault) {
        case Fault::io: return GGUFBPE_IO;
        case Fault::not_gguf: return GGUFBPE_NOT_GGUF;
        case Fault::truncated: return GGUFBPE_TRUNCATED;
        case Fault::corrupt: return GGUFBPE_CORRUPT;
        case Fault::unsupported: return GGUFBPE_UNSUPPORTED;
        default: return GGUFBPE_BAD_VOCABULARY;
    }
}

ggufbpe_status fill(ggufbpe_error *error, ggufbpe_status status, const char *message) noexcept {
    if (!error) return status;
    error->status = status;
    copy(error->message, message);
    error->key[0] = 0;
    error->offset = GGUFBPE_NO_OFFSET;
    error->needed = 0;
    return status;
}

}  // namespace

ggufbpe_status status_of_exception(ggufbpe_error *error, ggufbpe_status of_argument) noexcept {
    try {
        throw;
    } catch (const LoadError &problem) {
        const ggufbpe_status status = fill(error, status_of(problem.fault), problem.what());
        if (!error) return status;
        copy(error->key, problem.key.c_str());
        error->offset = problem.offset;
        error->needed = problem.needed;
        return status;
    } catch (const CallError &problem) {
        return fill(error, problem.status, problem.what());
    } catch (const NoSuchId &problem) {
        return fill(error, GGUFBPE_NO_SUCH_ID, problem.what());
    } catch (const std::invalid_argument &problem) {
        return fill(error, of_argument, problem.what());
    } catch (const std::bad_alloc &) {
        return fill(error, GGUFBPE_OUT_OF_MEMORY, "there is not enough memory");
    } catch (const std::length_error &) {
        return fill(error, GGUFBPE_OUT_OF_MEMORY, "more than 4 GiB in one piece");
    } catch (const std::exception &problem) {
        return fill(error, GGUFBPE_INTERNAL, problem.what());
    } catch (...) {
        return fill(error, GGUFBPE_INTERNAL, "an error of the library");
    }
}

}  // namespace ggufbpe

int ggufbpe_version(void) { return GGUFBPE_VERSION_MAJOR * 1000 + GGUFBPE_VERSION_MINOR; }

const char *ggufbpe_error_message(ggufbpe_status status) {
    switch (status) {
        case GGUFBPE_OK: return "no error";
        case GGUFBPE_INVALID_ARGUMENT: return "invalid argument";
        case GGUFBPE_OUT_OF_MEMORY: return "out of memory";
        case GGUFBPE_IO: return "the file cannot be read";
        case GGUFBPE_INTERRUPTED: return "interrupted";
        case GGUFBPE_NOT_GGUF: return "not a GGUF file";
        case GGUFBPE_TRUNCATED: return "the file ends within its metadata";
        case GGUFBPE_CORRUPT: return "the metadata are damaged";
        case GGUFBPE_UNSUPPORTED: return "a format or tokenizer that is not supported";
        case GGUFBPE_BAD_VOCABULARY: return "the vocabulary cannot be used";
        case GGUFBPE_BUFFER_TOO_SMALL: return "the buffer is too small";
        case GGUFBPE_CANNOT_ENCODE: return "the text cannot be encoded with this vocabulary";
        case GGUFBPE_NO_SUCH_ID: return "no such token id";
        case GGUFBPE_INTERNAL: return "internal error";
        default: return "unknown status";
    }
}
