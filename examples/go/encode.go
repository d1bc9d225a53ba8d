// The ids of a text: encode MODEL.gguf TEXT
package main

/*
#cgo pkg-config: ggufbpe
#include <ggufbpe.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: encode MODEL.gguf TEXT")
		os.Exit(2)
	}
	path, text := C.CString(os.Args[1]), C.CString(os.Args[2])
	defer C.free(unsafe.Pointer(path))
	defer C.free(unsafe.Pointer(text))
	var tokenizer *C.ggufbpe_tokenizer
	var failure C.ggufbpe_error
	if C.ggufbpe_open_file(path, nil, &tokenizer, &failure) != C.GGUFBPE_OK {
		fmt.Fprintln(os.Stderr, C.GoString(&failure.message[0]))
		os.Exit(1)
	}
	defer C.ggufbpe_close(tokenizer)
	encoding := C.ggufbpe_encoding_new()
	defer C.ggufbpe_encoding_free(encoding)
	if C.ggufbpe_encode(tokenizer, text, C.size_t(len(os.Args[2])), nil, encoding, &failure) != C.GGUFBPE_OK {
		fmt.Fprintln(os.Stderr, C.GoString(&failure.message[0]))
		os.Exit(1)
	}
	for _, id := range unsafe.Slice(C.ggufbpe_encoding_ids(encoding), C.ggufbpe_encoding_count(encoding)) {
		fmt.Println(id)
	}
}
