// Errors, and the names of the statuses in include/ggufbpe.h.

export const TRUNCATED = 6;
const CODES = [
  "OK",
  "INVALID_ARGUMENT",
  "OUT_OF_MEMORY",
  "IO",
  "INTERRUPTED",
  "NOT_GGUF",
  "TRUNCATED",
  "CORRUPT",
  "UNSUPPORTED",
  "BAD_VOCABULARY",
  "BUFFER_TOO_SMALL",
  "CANNOT_ENCODE",
  "NO_SUCH_ID",
  "INTERNAL",
];

export class TokenizerError extends Error {
  constructor(message, code, { key = null, offset = null, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: "TokenizerError", code, key, offset });
  }
}

export const errorOf = ({ status, message, key, offset }) =>
  new TokenizerError(message, CODES[status] ?? "INTERNAL", { key, offset });
