// A model's tokenizer: opened from the first bytes of its file, then text to ids and back.

import { TRUNCATED, TokenizerError, errorOf } from "./errors.js";
import { DecodeStream, IncrementalEncoding } from "./incremental.js";
import { checkedId, newLibrary } from "./library.js";
import { openModel } from "./model_bytes.js";
import { spansInUnits } from "./utf16.js";

const FIRST = 1 << 20; // bytes that are asked for first
const MOST_AT_ONCE = 64 << 20;
const LONGEST_HEADER = 512 << 20;
const SPECIAL = "bos eos eot eom unk sep pad mask fimPre fimSuf fimMid fimPad fimRep fimSep".split(" ");
const ATTRIBUTES = {
  unknown: 1,
  unused: 2,
  normal: 4,
  control: 8,
  userDefined: 16,
  byte: 32,
  lstrip: 128,
  rstrip: 256,
};

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

export class Tokenizer {
  // Only fromGGUF makes tokenizers.
  constructor(library, handle, bytesRead) {
    this._library = library;
    this._handle = handle;
    this._encoding = library.exports.ggufbpe_encoding_new();
    this.bytesRead = bytesRead;
  }

  static async fromGGUF(model, options = {}) {
    const library = await newLibrary(options.module);
    const source = openModel(model, options);
    try {
      const { handle, size } = await openGrowing(library, source);
      return new Tokenizer(library, handle, size);
    } finally {
      await source.close();
    }
  }

  // ---- text to ids ----

  encode(text, options = {}) {
    this._encode("ggufbpe_encode", text, options);
    return this._ids().slice();
  }

  encodeWithOffsets(text, options = {}) {
    const { _library: library, _encoding: encoding } = this;
    return library.withText(text, (at, size) => {
      this._encodeAt("ggufbpe_encode_with_offsets", text, at, size, options);
      const ids = this._ids().slice();
      const spans = library.ints(library.exports.ggufbpe_encoding_spans(encoding), 4 * ids.length);
      const offsets = new Uint32Array(2 * ids.length);
      for (let i = 0; i < offsets.length; ++i) offsets[i] = spans[2 * i]; // the lower half of 64 bits
      const isAsciiOrBytes = typeof text !== "string" || size === text.length;
      return { ids, offsets: isAsciiOrBytes ? offsets : spansInUnits(library.bytes(at, size), offsets) };
    });
  }

  count(text, options = {}) {
    const { _library: library, _handle: handle } = this;
    library.withText(text, (at, size) =>
      withEncodeOptions(library, text, options, (given) =>
        library.check(library.exports.ggufbpe_count(handle, at, size, given, library.cell, library.error)),
      ),
    );
    return library.number(library.cell);
  }

  incremental(options = {}) {
    return new IncrementalEncoding(this, (made) =>
      withEncodeOptions(this._library, null, options, (given) => made(given)),
    );
  }

  // ---- ids to text ----

  decode(ids, options = {}) {
    return utf8.decode(this.decodeBytes(ids, options));
  }

  decodeBytes(ids, options = {}) {
    const { _library: library, _handle: handle } = this;
    if (typeof ids?.[Symbol.iterator] !== "function") throw new TypeError("ids are an array or another iterable");
    const given = ids instanceof Int32Array ? ids : Int32Array.from(ids, checkedId);
    const at = library.allocate(given.byteLength);
    try {
      library.ints(at, given.length).set(given);
      return withDecodeOptions(library, options, (wanted) =>
        library.written(
          (to, capacity, size) =>
            library.exports.ggufbpe_decode(handle, at, given.length, wanted, to, capacity, size, library.error),
          8 * given.length + 64,
        ),
      );
    } finally {
      library.exports.free(at);
    }
  }

  decodeStream(options = {}) {
    return new DecodeStream(this, (made) => withDecodeOptions(this._library, options, (given) => made(given)));
  }

  // ---- the vocabulary ----

  get vocabularySize() {
    return this._library.exports.ggufbpe_vocabulary_size(this._handle);
  }
  get model() {
    return this._library.stringToNul(this._library.exports.ggufbpe_model_name(this._handle));
  }
  get preTokenizer() {
    return this._library.stringToNul(this._library.exports.ggufbpe_pre_tokenizer_name(this._handle)) || null;
  }
  get addsBos() {
    return Boolean(this._library.exports.ggufbpe_adds_bos(this._handle));
  }
  get addsEos() {
    return Boolean(this._library.exports.ggufbpe_adds_eos(this._handle));
  }
  get warnings() {
    const { exports } = this._library;
    return Array.from({ length: exports.ggufbpe_warning_count(this._handle) }, (_, index) =>
      this._library.stringToNul(exports.ggufbpe_warning(this._handle, index)),
    );
  }
  get specialIds() {
    const idOf = (which) => this._library.exports.ggufbpe_special_id(this._handle, which);
    return Object.fromEntries(SPECIAL.map((name, which) => [name, idOf(which) < 0 ? null : idOf(which)]));
  }

  isEndOfGeneration(id) {
    return Boolean(this._library.exports.ggufbpe_is_end_of_generation(this._handle, checkedId(id)));
  }

  piece(id, { special = true } = {}) {
    const { _library: library, _handle: handle } = this;
    return library.written((to, capacity, size) =>
      library.exports.ggufbpe_token_piece(handle, checkedId(id), Number(special), to, capacity, size, library.error),
    );
  }

  tokenText(id) {
    const { _library: library, _handle: handle } = this;
    const { cell } = library;
    library.check(library.exports.ggufbpe_token_text(handle, checkedId(id), cell, cell + 4, library.error));
    return library.string(library.number(cell), library.number(cell + 4));
  }

  findToken(text) {
    const { _library: library, _handle: handle } = this;
    const id = library.withText(text, (at, size) => library.exports.ggufbpe_find_token(handle, at, size));
    return id < 0 ? null : id;
  }

  attributes(id) {
    const bits = this._library.exports.ggufbpe_token_attributes(this._handle, checkedId(id));
    return Object.keys(ATTRIBUTES).filter((name) => bits & ATTRIBUTES[name]);
  }

  releaseMemory() {
    this._library.exports.ggufbpe_release_memory(this._handle);
  }

  _encode(name, text, options) {
    this._library.withText(text, (at, size) => this._encodeAt(name, text, at, size, options));
  }
  _encodeAt(name, text, at, size, options) {
    const { _library: library, _handle: handle, _encoding: encoding } = this;
    withEncodeOptions(library, text, options, (given) =>
      library.check(library.exports[name](handle, at, size, given, encoding, library.error)),
    );
  }
  _ids() {
    const { exports } = this._library;
    return this._library.ints(
      exports.ggufbpe_encoding_ids(this._encoding),
      exports.ggufbpe_encoding_count(this._encoding),
    );
  }
}

// A string became UTF-8 on its way into the library's memory, which need not check it.
const withEncodeOptions = (library, text, { addSpecial = true, parseSpecial = true }, use) =>
  library.withOptions([Number(addSpecial), Number(parseSpecial), 0, 1, 0, 0, Number(typeof text === "string"), 0], use);

const withDecodeOptions = (library, { removeSpecial = false, unparseSpecial = false, cleanSpaces = true }, use) =>
  library.withOptions([Number(removeSpecial), Number(unparseSpecial), Number(cleanSpaces)], use);

// Opens a tokenizer from as many of the first bytes as it takes; these lie in the library's memory only.
async function openGrowing(library, source) {
  const { exports } = library;
  let at = 0,
    size = 0,
    needed = FIRST,
    isAtEnd = false;
  try {
    for (;;) {
      while (size < needed && !isAtEnd) {
        const bytes = await source.next(Math.min(Math.max(needed - size, size, FIRST), MOST_AT_ONCE));
        isAtEnd = bytes.length === 0;
        if (size + bytes.length > LONGEST_HEADER) {
          throw new TokenizerError("the metadata is longer than 512 MiB", "CORRUPT");
        }
        const grown = exports.realloc(at, size + bytes.length || 1);
        if (!grown) throw errorOf({ status: 2, message: "out of memory", key: null, offset: null });
        at = grown;
        library.bytes(at + size, bytes.length).set(bytes);
        size += bytes.length;
      }
      const status = exports.ggufbpe_open_buffer(at, size, 0, library.cell, library.error);
      if (!status) return { handle: library.number(library.cell), size };
      const failure = library.failure(status);
      if (status !== TRUNCATED || isAtEnd) throw errorOf(failure);
      needed = failure.needed;
    }
  } finally {
    exports.free(at);
  }
}
