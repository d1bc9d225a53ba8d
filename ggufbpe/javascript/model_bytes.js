// The bytes of a model file, from the first one on and no more than are asked for.
//
//     bytes | Blob | address | path -> openModel -> { next, close }
//
// next(count) gives the next `count` bytes or so, and an empty array at the end.

import { TokenizerError } from "./errors.js";

const node = (name) => globalThis.process?.getBuiltinModule?.(`node:${name}`);
const IS_ADDRESS = /^(?:[a-z][a-z\d+.-]+:\/\/|(?:blob|data|file):)/i; // C: is a drive, and a file's name may have a colon

export function openModel(model, { fetch = globalThis.fetch, headers, signal } = {}) {
  if (model instanceof ArrayBuffer || ArrayBuffer.isView(model)) return bytesIn(model);
  if (model instanceof Blob) return blobBytes(model);
  if (typeof model !== "string" && !(model instanceof URL)) {
    throw new TypeError("a model is bytes, a Blob or File, a URL, or in Node a path");
  }
  const fs = node("fs/promises");
  const isAddress = model instanceof URL || IS_ADDRESS.test(model);
  const isLocal = !isAddress || String(model).startsWith("file:");
  return fs && isLocal ? fileBytes(fs, isAddress ? new URL(model) : model) : remoteBytes(model, fetch, headers, signal);
}

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
function remoteBytes(url, fetch, headers, signal) {
  const stop = new AbortController();
  const signals = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  let at = 0,
    version = null, // the entity tag of the first answer, if it has one
    stream = null; // of a server without ranges
  const failed = (message, cause) => new TokenizerError(`${url}: ${message}`, "IO", { cause });

  async function range(count) {
    const wanted = { ...headers, Range: `bytes=${at}-${at + count - 1}` };
    // not from a cache, which may put ranges of two versions together
    const response = await fetch(url, { headers: wanted, signal: signals, cache: "no-store" }).catch((error) => {
      if (signal?.aborted) throw error;
      throw failed(`no answer (${error.cause?.message ?? error.message}); in a browser, the server must allow other sites (CORS)`, error);
    });
    if (response.status === 416) return new Uint8Array(); // behind the end
    if (response.status === 200) {
      if (at) throw failed("the server has stopped answering ranges");
      stream = response.body.getReader();
      return streamed(count);
    }
    if (response.status !== 206) throw failed(`the server responded with status ${response.status}`);
    checkRange(response, count);
    return new Uint8Array(await response.arrayBuffer());
  }

  function checkRange(response, count) {
    const sent = /^bytes (\d+)-(\d+)/.exec(response.headers.get("Content-Range") ?? ""); // other sites may hide it
    if (sent && (Number(sent[1]) !== at || Number(sent[2]) >= at + count)) throw failed("the server sent another range");
    const tag = response.headers.get("ETag");
    if (at && tag !== version) throw failed("the file has changed while it was read");
    version = tag;
  }

  async function streamed(count) {
    const chunks = [];
    for (let size = 0; size < count; size += chunks.at(-1).length) {
      const { value, done } = await stream.read();
      if (done) break;
      chunks.push(value);
    }
    return joined(chunks);
  }

  async function next(count) {
    try {
      const bytes = await (stream ? streamed(count) : range(count));
      at += bytes.length;
      return bytes;
    } catch (error) {
      if (signal?.aborted || error instanceof TokenizerError) throw error;
      throw failed(`the connection broke (${error.message})`, error);
    }
  }
  return { next, close: async () => stop.abort() };
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
