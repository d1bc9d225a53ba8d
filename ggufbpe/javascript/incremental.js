// Texts that grow, and ids that come one by one. Both are freed by the garbage collector.

import { checkedId } from "./library.js";

const CHANGE = 12; // bytes of a ggufbpe_change
const HIGH_SURROGATE = /[\uD800-\uDBFF]$/;

const abandoned = new FinalizationRegistry(({ library, free, handle }) => library.exports[free](handle));

// Makes a handle that is freed with `owner`: make(address) writes it to that address and returns a status.
function handleOf(owner, library, free, make) {
  library.check(make(library.cell));
  const handle = library.number(library.cell);
  abandoned.register(owner, { library, free, handle });
  return handle;
}

export class IncrementalEncoding {
  constructor(tokenizer, withOptions) {
    const { _library: library } = tokenizer;
    this._tokenizer = tokenizer; // must live as long
    this._library = library;
    this._pending = ""; // half of a surrogate pair
    this._handle = handleOf(this, library, "ggufbpe_growing_text_free", (to) =>
      withOptions((options) =>
        library.exports.ggufbpe_growing_text_new(tokenizer._handle, options, to, library.error),
      ),
    );
  }

  append(text) {
    const { _library: library, _handle: handle } = this;
    let given = text,
      pending = "";
    if (typeof text === "string") {
      const all = this._pending + text;
      pending = HIGH_SURROGATE.exec(all)?.[0] ?? "";
      given = all.slice(0, all.length - pending.length);
    } else if (this._pending && text instanceof Uint8Array) {
      throw new TypeError("bytes cannot follow half of a surrogate pair");
    }
    const change = library.allocate(CHANGE);
    try {
      library.withText(given, (at, size) =>
        library.check(library.exports.ggufbpe_growing_text_append(handle, at, size, change, library.error)),
      );
      this._pending = pending; // a call that fails changes nothing
      const [kept, removed, inserted] = library.ints(change, 3);
      return { kept, removed, inserted };
    } finally {
      library.exports.free(change);
    }
  }

  get count() {
    return this._library.exports.ggufbpe_growing_text_count(this._handle);
  }
  get ids() {
    return this._library.ints(this._library.exports.ggufbpe_growing_text_ids(this._handle), this.count).slice();
  }
}

export class DecodeStream {
  constructor(tokenizer, withOptions) {
    const { _library: library } = tokenizer;
    this._tokenizer = tokenizer;
    this._library = library;
    this._handle = handleOf(this, library, "ggufbpe_decode_stream_free", (to) =>
      withOptions((options) =>
        library.exports.ggufbpe_decode_stream_new(tokenizer._handle, options, to, library.error),
      ),
    );
  }

  push(id) {
    const { exports, cell, error } = this._library;
    return this._settled(exports.ggufbpe_decode_stream_push(this._handle, checkedId(id), cell, cell + 4, error));
  }

  finish() {
    const { exports, cell, error } = this._library;
    return this._settled(exports.ggufbpe_decode_stream_finish(this._handle, cell, cell + 4, error));
  }

  _settled(status) {
    const { _library: library } = this;
    library.check(status);
    return library.string(library.number(library.cell), library.number(library.cell + 4));
  }
}
