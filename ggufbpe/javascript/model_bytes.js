// The bytes of a model file, from the first one on and no more than are asked for.
//
//     bytes | Blob | address | path -> openModel -> { next, close }
//
// next(count) gives the next `count` bytes or so, and an empty array at the end.

import { TokenizerError } from "./errors.js";

const node = (name) => globalThis.process?.getBuiltinModule?.(`node:${name}`);
const SHORT = 16 * 1024; // a server may limit its ranges, but not to so few bytes that it is asked without an end
const MOST_SHORT = 100;
const IS_ADDRESS = /^(?:[a-z][a-z\d+.-]+:\/\/|(?:blob|data|file):)/i; // C: is a drive, and a file's name may have a colon

export function openModel(model, { fetch = globalThis.fetch, headers, signal } = {}) {
  if (model instanceof ArrayBuffer || isShared(model) || ArrayBuffer.isView(model)) return bytesIn(model);
  if (model instanceof Blob) return blobBytes(model);
  if (typeof model !== "string" && !(model instanceof URL)) {
    throw new TypeError("a model is bytes, a Blob or File, a URL, or in Node a path");
  }
  const fs = node("fs/promises");
  const isAddress = model instanceof URL || IS_ADDRESS.test(model);
  const isLocal = !isAddress || /^file:/i.test(model);
  return fs && isLocal ? fileBytes(fs, isAddress ? new URL(model) : model) : remoteBytes(model, fetch, headers, signal);
}

// Some pages have no SharedArrayBuffer.
const isShared = (model) => globalThis.SharedArrayBuffer !== undefined && model instanceof SharedArrayBuffer;

function bytesIn(model) {
  const view = ArrayBuffer.isView(model) ? [model.buffer, model.byteOffset, model.byteLength] : [model];
  const bytes = new Uint8Array(...view);
  let at = 0;
  return {
    next: async (count) => bytes.subarray(at, (at += Math.min(count, bytes.length - at))),
    close: async () => {},
  };
}

function blobBytes(blob) {
  let at = 0;
  const next = async (count) => {
    try {
      const bytes = new Uint8Array(await blob.slice(at, at + count).arrayBuffer());
      at += bytes.length;
      return bytes;
    } catch (error) {
      throw new TokenizerError(`the file cannot be read: ${error.message}`, "IO", { cause: error });
    }
  };
  return { next, close: async () => {} };
}

function fileBytes(fs, path) {
  let file = null,
    at = 0;
  const next = async (count) => {
    try {
      file ??= await fs.open(path);
      const { buffer, bytesRead } = await file.read(new Uint8Array(count), 0, count, at);
      at += bytesRead;
      return buffer.subarray(0, bytesRead);
    } catch (error) {
      throw new TokenizerError(`the file cannot be read: ${error.message}`, "IO", { cause: error });
    }
  };
  return { next, close: async () => file?.close() };
}

// By ranges, each in a request. A server that has no ranges sends the whole file, of which as much is read as is needed.
// A blob: address is read that way, too, because Node 20's fetch leaves out the last byte of a range (nodejs/node#60382).
function remoteBytes(url, fetch, headers, signal) {
  const hasRanges = !/^blob:/i.test(url);
  const given = Object.fromEntries(new Headers(headers)); // in any form that fetch takes
  let at = 0,
    stop = null, // ends the last request; each has its own, because fetch may leave a listener on its signal
    short = 0, // answers with fewer bytes than requested, and fewer than SHORT
    version = null, // the entity tag of the first answer, or else its date of last modification, if it has one
    total = null, // the file's size, by the first answer, if that says it
    stream = null; // of a server without ranges
  const failed = (message, cause) => new TokenizerError(`${url}: ${message}`, "IO", { cause });
  const changed = () => failed("the file has changed while it was read");

  async function range(count) {
    const wanted = hasRanges ? { ...given, Range: `bytes=${at}-${at + count - 1}` } : given;
    stop = new AbortController();
    const signals = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
    // not from a cache, which may put ranges of two versions together
    const response = await fetch(url, { headers: wanted, signal: signals, cache: "no-store" }).catch((error) => {
      if (signal?.aborted) throw error;
      const reason = at === 0 && mayBeCors(url, error) ? "; the server may not allow requests from other sites (CORS)" : "";
      throw failed(`no answer (${error.cause?.message || error.message})${reason}`, error);
    });
    if (response.status === 416) {
      if (total !== null && at < total) throw changed();
      return new Uint8Array(); // behind the end
    }
    if (response.status === 200) {
      if (at) throw failed("the server has stopped answering ranges");
      stream = readerOf(response);
      return readAtLeast(stream, count);
    }
    if (response.status !== 206) throw failed(`the server responded with status ${response.status}`);
    return partial(response, count);
  }

  async function partial(response, count) {
    const sent = contentRange(response);
    const isParted = /^multipart\/byteranges/i.test(response.headers.get("Content-Type") ?? "");
    if (isParted || (sent && (sent.start !== at || sent.end > at + count))) throw failed("the server sent another range");
    checkVersion(response, sent?.total ?? null);
    const most = sent ? sent.end - sent.start : count;
    const body = readerOf(response);
    const bytes = await readAtLeast(body, most + 1); // one more, to see that there is none
    if (bytes.length > most) {
      await body.cancel();
      throw failed(`the server sent more bytes than ${sent ? "it announced" : "were requested"}`);
    }
    if (sent && bytes.length < most) throw failed("the server sent fewer bytes than it announced");
    if (bytes.length < Math.min(count, SHORT) && ++short > MOST_SHORT) {
      throw failed(`the server sent fewer than ${SHORT} bytes of the requested ones, ${short} times`);
    }
    return bytes;
  }

  function checkVersion(response, size) {
    const found = response.headers.get("ETag") || response.headers.get("Last-Modified");
    const isOther = total !== null && size !== null && size !== total;
    if (at && (found !== version || isOther)) throw changed();
    version = found;
    total ??= size;
  }

  async function next(count) {
    try {
      const bytes = await (stream ? readAtLeast(stream, count) : range(count));
      at += bytes.length;
      return bytes;
    } catch (error) {
      if (signal?.aborted || error instanceof TokenizerError) throw error;
      throw failed(`the connection broke (${error.message})`, error);
    }
  }
  return { next, close: async () => stop?.abort() };
}

// Whether the browser may have refused the page an answer of another site; fetch reports that like a broken connection.
function mayBeCors(url, error) {
  const page = globalThis.location; // none in Node
  if (!page || !(error instanceof TypeError) || !URL.canParse(url, page.href)) return false;
  const { protocol, origin } = new URL(url, page.href);
  return /^https?:$/.test(protocol) && origin !== page.origin;
}

// The range of the file that an answer says it has, and the file's size; null without the header, which other sites may hide.
function contentRange(response) {
  const found = /^bytes (\d+)-(\d+)(?:\/(\d+))?/.exec(response.headers.get("Content-Range") ?? "");
  return found && { start: Number(found[1]), end: Number(found[2]) + 1, total: found[3] ? Number(found[3]) : null };
}

// Of a body that is no stream, as some replacements of fetch give it, all is read at once.
function readerOf(response) {
  if (response.body?.getReader) return response.body.getReader();
  let value = null;
  return {
    read: async () => (value ? { done: true } : { value: (value = new Uint8Array(await response.arrayBuffer())), done: false }),
    cancel: async () => {},
  };
}

// At least `count` bytes of a stream, and fewer only at its end.
async function readAtLeast(stream, count) {
  const chunks = [];
  for (let size = 0; size < count; size += chunks.at(-1).length) {
    const { value, done } = await stream.read();
    if (done) break;
    chunks.push(value);
  }
  return joined(chunks);
}

function joined(chunks) {
  const all = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
