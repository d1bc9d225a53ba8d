// The C library (include/ggufbpe.h) as a WebAssembly instance: its memory, strings, structures and errors.
//
// Each tokenizer has an instance of its own, so that all of its memory is freed with the tokenizer, by the garbage
// collector. Pointers and sizes are 32 bits.

import { errorOf } from "./errors.js";

const ERROR = { size: 528, message: 4, key: 408, offset: 512, needed: 520 };
const NO_OFFSET = 2n ** 64n - 1n;
const SHORT = 1 << 22; // characters of a string that is written to the memory directly, in room for the most that it can be
const utf8 = new TextEncoder();
const text = new TextDecoder("utf-8", { ignoreBOM: true });

let compiled = null; // the module, shared by all instances

async function compile() {
  const url = new URL("ggufbpe.wasm", import.meta.url);
  const fs = globalThis.process?.getBuiltinModule?.("node:fs/promises");
  if (fs && url.protocol === "file:") return WebAssembly.compile(await fs.readFile(url));
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the server responded with status ${response.status}`);
  // compileStreaming would refuse a server that does not know the type of .wasm files
  return WebAssembly.compile(await response.arrayBuffer());
}

// A new instance. `module` is ggufbpe.wasm compiled, for where this file cannot load it.
export async function newLibrary(module) {
  if (!module) {
    compiled ??= compile();
    compiled.catch(() => (compiled = null)); // a failure is not kept
    module = await compiled;
  }
  const library = new Library();
  const instance = await WebAssembly.instantiate(module, importsOf(library));
  library.exports = instance.exports;
  instance.exports._initialize();
  library.error = library.exports.malloc(ERROR.size);
  library.cell = library.exports.malloc(16); // for results through pointers
  return library;
}

// What the C++ runtime asks of its host: seeds for hash tables and the time, and an end after a failure.
function importsOf(library) {
  return {
    env: {
      emscripten_notify_memory_growth: () => {},
      getentropy: (at, size) => {
        crypto.getRandomValues(library.bytes(at, size));
        return 0;
      },
    },
    wasi_snapshot_preview1: {
      clock_time_get: (clock, precision, at) => {
        library.view().setBigUint64(at >>> 0, BigInt(Date.now()) * 1_000_000n, true);
        return 0;
      },
      proc_exit: (code) => {
        throw new Error(`ggufbpe.wasm has ended with code ${code}`);
      },
    },
  };
}

// WebAssembly would take undefined and NaN for 0, and other numbers modulo 2 ** 32.
export function checkedId(id) {
  if (typeof id !== "number" || id !== (id | 0)) {
    throw new TypeError(`an id is a whole number of 32 bits, not ${String(id)} (${typeof id})`);
  }
  return id;
}

class Library {
  // Views are made for each use: the memory moves when it grows.
  bytes(at, size) {
    return new Uint8Array(this.exports.memory.buffer, at >>> 0, size); // above 2 GiB, addresses come as negative numbers
  }
  view() {
    return new DataView(this.exports.memory.buffer);
  }
  number(at) {
    return this.view().getUint32(at >>> 0, true);
  }
  ints(at, count) {
    return new Int32Array(this.exports.memory.buffer, at >>> 0, count);
  }

  string(at, size) {
    return text.decode(this.bytes(at, size));
  }
  stringToNul(at) {
    const all = new Uint8Array(this.exports.memory.buffer);
    return this.string(at, all.indexOf(0, at >>> 0) - (at >>> 0));
  }

  allocate(size) {
    const at = this.exports.malloc(size || 1);
    if (!at) throw errorOf({ status: 2, message: "out of memory", key: null, offset: null });
    return at;
  }

  // Calls use(address, size) with the UTF-8 of a string, or with bytes as they are.
  withText(given, use) {
    const isShort = typeof given === "string" && given.length <= SHORT;
    const bytes = typeof given === "string" && !isShort ? utf8.encode(given) : given;
    if (!isShort && !(bytes instanceof Uint8Array)) throw new TypeError("a text is a string or a Uint8Array");
    const room = isShort ? given.length * 3 : bytes.length;
    const at = this.allocate(room);
    try {
      const memory = this.bytes(at, room);
      if (isShort) return use(at, utf8.encodeInto(given, memory).written);
      memory.set(bytes);
      return use(at, room);
    } finally {
      this.exports.free(at);
    }
  }

  // Calls use(address) with a structure of 32-bit numbers that begins with its size.
  withOptions(numbers, use) {
    const at = this.allocate(4 * (numbers.length + 1));
    try {
      this.ints(at, numbers.length + 1).set([4 * (numbers.length + 1), ...numbers]);
      return use(at);
    } finally {
      this.exports.free(at);
    }
  }

  // What ended a call: the status, and the facts about it.
  failure(status) {
    const view = this.view();
    const offset = view.getBigUint64(this.error + ERROR.offset, true);
    return {
      status,
      message: this.stringToNul(this.error + ERROR.message),
      key: this.stringToNul(this.error + ERROR.key) || null,
      offset: offset === NO_OFFSET ? null : Number(offset),
      needed: Number(view.getBigUint64(this.error + ERROR.needed, true)),
    };
  }
  check(status) {
    if (status) throw errorOf(this.failure(status));
  }

  // The result of a call that writes bytes of unknown number: write(address, capacity, size) returns its status.
  written(write, capacity = 64) {
    const TOO_SMALL = 10;
    for (;;) {
      const at = this.allocate(capacity);
      try {
        const status = write(at, capacity, this.cell);
        const size = this.number(this.cell);
        if (status !== TOO_SMALL) {
          this.check(status);
          return this.bytes(at, size).slice();
        }
        capacity = size;
      } finally {
        this.exports.free(at);
      }
    }
  }
}
