// What the package exports.

export { TokenizerError } from "./errors.js";
export { DecodeStream, IncrementalEncoding } from "./incremental.js";
export { Tokenizer } from "./tokenizer.js";
