// Python's side of the files in which tables and strings are kept (ggufbpe/native/table_cache.py).

#include "bind_files.h"

#include <nanobind/stl/shared_ptr.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "bind_lock.h"
#include "bindings.h"
#include "packed_strings.h"
#include "string_array.h"
#include "table_file.h"

namespace ggufbpe {

namespace {

nb::bytes key_of_file(const nb::bytes &secret, const nb::args &about) {
    KeyedHash hash(secret_numbers<HashKey>(secret));
    for (const nb::handle each : about) {
        const auto part = nb::cast<nb::bytes>(each);
        hash.add(part.data(), part.size());
    }
    return bytes_of(hash.digest());
}

nb::bytes digest_of_packed(const PackedStrings &self, const nb::bytes &secret) {
    return bytes_of(self.digest(secret_numbers<HashKey>(secret)));
}

nb::object known_strings(std::shared_ptr<TableFile> file, int descriptor, uint64_t offset, uint64_t left, uint64_t count,
                         const nb::bytes &secret) {
    const auto secret_key = secret_numbers<HashKey>(secret);
    const KnownStrings known(std::move(file));
    std::shared_ptr<Strings> strings;
    std::shared_ptr<const PackedStrings> packed;
    {
        nb::gil_scoped_release unlocked;
        packed = known.read(descriptor, offset, left, count, secret_key);
        if (packed && known.has_strings()) strings = std::make_shared<Strings>(known.strings());
    }
    if (!packed) return nb::none();
    const nb::object made = strings ? nb::cast(strings) : nb::cast(std::const_pointer_cast<PackedStrings>(packed));
    return nb::make_tuple(packed->size(), made, bytes_of(known.digest()));
}

// `const` in effect: nanobind knows no pointer to a constant object.
std::shared_ptr<TableFile> read_tables(int descriptor, size_t size, const nb::bytes &secret, const nb::bytes &key) {
    const auto secret_key = secret_numbers<HashKey>(secret);
    const auto file_key = secret_numbers<Digest>(key);
    nb::gil_scoped_release unlocked;  // a home folder may be far away
    return std::const_pointer_cast<TableFile>(TableFile::read(descriptor, size, secret_key, file_key));
}

}  // namespace

void bind_files(nb::module_ &module) {
    nb::class_<TableFile>(module, "TableFile", "A file of tables or strings.")
        .def_static("key", &key_of_file, nb::arg("secret"), nb::arg("about"),
                    nb::sig("def key(secret: bytes, *about: bytes) -> bytes"),
                    "16 bytes that stand for all of `about`; `secret` has 64.")
        .def_static("read", &read_tables, nb::arg("descriptor"), nb::arg("size"), nb::arg("secret"), nb::arg("key"),
                    nb::sig("def read(descriptor: int, size: int, secret: bytes, key: bytes) -> TableFile | None"),
                    "Read an open file of `size` bytes; None if it is damaged or has another key.")
        .def("known_strings", &known_strings, nb::arg("descriptor"), nb::arg("offset"), nb::arg("left"), nb::arg("count"),
             nb::arg("secret"),
             nb::sig("def known_strings(self, descriptor: int, offset: int, left: int, count: int, secret: bytes) "
                     "-> tuple[int, Strings | PackedStrings, bytes] | None"),
             "Return the bytes that the array of `count` strings at `offset` of an open file takes, its strings, and its digest;"
             " None if it is not the array that `Strings.written` gave this file of, or takes more than `left` bytes.");
    nb::class_<PackedStrings>(module, "PackedStrings", "An array of strings as a little-endian GGUF has it.")
        .def("__len__", &PackedStrings::count)
        .def("digest", &digest_of_packed, nb::arg("secret"), "16 bytes that stand for these strings.")
        .def("strings", [](const PackedStrings &self) { return std::make_shared<Strings>(self.strings(LOOK_AT_SIGNALS)); });
}

}  // namespace ggufbpe
