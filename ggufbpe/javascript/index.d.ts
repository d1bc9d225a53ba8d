/** The tokenizer of a GGUF model, with exactly llama.cpp's ids. */

/** Bytes of a model file (all of them, or the first ones), a `File` or `Blob`, an address, or in Node a path. */
export type Model = ArrayBufferLike | ArrayBufferView | Blob | URL | string;

/** A text. A string is encoded as by `TextEncoder`: half of a surrogate pair becomes U+FFFD. Bytes are taken as they are. */
export type Text = string | Uint8Array;

// Arrays in memory that is not shared: since TypeScript 5.7, the type of an array says so.
type Int32s = ReturnType<Int32Array["slice"]>;
type Uint32s = ReturnType<Uint32Array["slice"]>;
type Bytes = ReturnType<Uint8Array["slice"]>;

export interface OpenOptions {
  /** `ggufbpe.wasm`, compiled; for bundlers and workers where the package cannot load it from beside its own files. */
  module?: WebAssembly.Module;
  /** What reads an address; the global `fetch` by default. */
  fetch?: typeof globalThis.fetch;
  /** Further headers for an address, such as `{ Authorization: "Bearer …" }`, in any form that `fetch` takes. */
  headers?: ConstructorParameters<typeof Headers>[0];
  /** Ends the reading of an address. */
  signal?: AbortSignal;
}

export interface EncodeOptions {
  /** Add BOS, EOS and the like where the model wants them (`llama_tokenize`'s `add_special`); true by default. */
  addSpecial?: boolean;
  /** Recognize control tokens in the text (`llama_tokenize`'s `parse_special`); true by default. */
  parseSpecial?: boolean;
}

export interface DecodeOptions {
  /** Leave out the BOS and EOS that encoding adds (`llama_detokenize`'s `remove_special`); false by default. */
  removeSpecial?: boolean;
  /** Write control tokens as text (`llama_detokenize`'s `unparse_special`); false by default. */
  unparseSpecial?: boolean;
  /** Drop spaces before punctuation where the model's pre-tokenizer asks for that; true by default, as in llama.cpp. */
  cleanSpaces?: boolean;
}

export interface Encoding {
  ids: Int32s;
  /**
   * Where each token lies in the text: token i from `offsets[2 * i]` up to `offsets[2 * i + 1]`. For a string these are
   * indices as `slice` takes them, and tokens that share a character each have all of it; for bytes, numbers of bytes.
   */
  offsets: Uint32s;
}

/** How ids have changed: the first `kept` are as before, `removed` behind them are gone, `inserted` are in their place. */
export interface IdsChange {
  kept: number;
  removed: number;
  inserted: number;
}

export interface SpecialIds {
  bos: number | null;
  eos: number | null;
  eot: number | null;
  eom: number | null;
  unk: number | null;
  sep: number | null;
  pad: number | null;
  mask: number | null;
  fimPre: number | null;
  fimSuf: number | null;
  fimMid: number | null;
  fimPad: number | null;
  fimRep: number | null;
  fimSep: number | null;
}

export type Attribute = "unknown" | "unused" | "normal" | "control" | "userDefined" | "byte" | "lstrip" | "rstrip";

export type ErrorCode =
  | "INVALID_ARGUMENT"
  | "OUT_OF_MEMORY"
  | "IO"
  | "INTERRUPTED"
  | "NOT_GGUF"
  | "TRUNCATED"
  | "CORRUPT"
  | "UNSUPPORTED"
  | "BAD_VOCABULARY"
  | "BUFFER_TOO_SMALL"
  | "CANNOT_ENCODE"
  | "NO_SUCH_ID"
  | "INTERNAL";

export class TokenizerError extends Error {
  private constructor();
  readonly code: ErrorCode;
  /** The metadata key at fault. */
  readonly key: string | null;
  /** Where in the file the fault is. */
  readonly offset: number | null;
}

/** A model's tokenizer. Its memory is freed by the garbage collector. */
export class Tokenizer {
  private constructor();

  /**
   * Open a model. Only its metadata is read: of a `File` by slices, of an address by HTTP ranges, or from the beginning
   * of its stream where the server has no ranges. Nothing is uploaded.
   *
   * Rejects with a `TokenizerError`, with what `signal` was aborted with, with a `TypeError` for what is no model, or with
   * another error if `ggufbpe.wasm` cannot be loaded.
   */
  static fromGGUF(model: Model, options?: OpenOptions): Promise<Tokenizer>;

  /** The number of bytes of the file that were read. */
  readonly bytesRead: number;

  /** The ids of a text, as `llama_tokenize` gives them. */
  encode(text: Text, options?: EncodeOptions): Int32s;
  /** The ids of a text, and where each lies in it. */
  encodeWithOffsets(text: Text, options?: EncodeOptions): Encoding;
  /** The number of ids of a text. */
  count(text: Text, options?: EncodeOptions): number;
  /** An empty text to which more is appended, at the cost of its end alone. */
  incremental(options?: EncodeOptions): IncrementalEncoding;

  /** The text of ids; bytes that form no character become U+FFFD. */
  decode(ids: Iterable<number>, options?: DecodeOptions): string;
  /** The bytes of ids, as `llama_detokenize` gives them. */
  decodeBytes(ids: Iterable<number>, options?: DecodeOptions): Bytes;
  /** Ids in, one by one; text out, as soon as no further id can change it. */
  decodeStream(options?: DecodeOptions): DecodeStream;

  /** The number of tokens; ids are 0 up to it. */
  readonly vocabularySize: number;
  /** `tokenizer.ggml.model` of the file. */
  readonly model: string;
  /** The pre-tokenizer in force; null for models that have none. */
  readonly preTokenizer: string | null;
  readonly addsBos: boolean;
  readonly addsEos: boolean;
  /** Problems of a file that loads all the same. */
  readonly warnings: string[];
  readonly specialIds: SpecialIds;

  /** Whether a token ends a generation (`llama_vocab_is_eog`); false for an id that no token has. */
  isEndOfGeneration(id: number): boolean;
  /** The bytes of a token (`llama_token_to_piece`); control tokens are empty unless `special`, which is the default. */
  piece(id: number, options?: { special?: boolean }): Bytes;
  /** A token as the file writes it: `"Ġworld"` for `" world"`. */
  tokenText(id: number): string;
  /** The id of the token that the file writes so, or null. */
  findToken(text: Text): number | null;
  /** The attributes of a token; an empty array for an id that no token has. */
  attributes(id: number): Attribute[];

  /** Free the cache of words that were encoded. */
  releaseMemory(): void;
}

/** A text that grows, and its ids. */
export class IncrementalEncoding {
  private constructor();
  /**
   * Append to the text. Half of a surrogate pair at its end waits for the other half, and bytes cannot follow it (a
   * `TypeError`); bytes may end within a character, which the next ones complete.
   */
  append(text: Text): IdsChange;
  /** The number of ids of all of the text so far. */
  readonly count: number;
  /** The ids of all of the text so far, which are those of `encode`, without a half of a pair that waits. */
  readonly ids: Int32s;
}

/** Text from ids that come one by one. */
export class DecodeStream {
  private constructor();
  /** The text that an id settles, often none. */
  push(id: number): string;
  /** The rest of the text; the stream is then as new. */
  finish(): string;
}
