// The worker of a page without a server: the WebAssembly package answers what a server would, with the models that were
// opened in this tab. The answers have the form of ggufbpe/server/page_api.py. A worker, so that a megabyte of text or a
// large vocabulary does not freeze the page.

import { Tokenizer } from "./ggufbpe/index.js";

const MOST_FOUND = 200; // tokens of a search in the vocabulary
const TYPES = {
  unknown: "UNKNOWN",
  unused: "UNUSED",
  normal: "NORMAL",
  control: "CONTROL",
  userDefined: "USER_DEFINED",
  byte: "BYTE",
  lstrip: "LSTRIP",
  rstrip: "RSTRIP",
};
const SPECIAL = ["CONTROL", "USER_DEFINED", "UNKNOWN"];
const MOST_SHOWN = 4 << 20; // bytes of a text, as on a server
const utf8 = new TextEncoder();
const models = new Map(); // name -> Tokenizer
const facts = new WeakMap(); // Tokenizer -> what is known of its tokens, by id

// Opens a File or a whole address, and returns the model's name on this page.
async function openModel(given) {
  const isAddress = typeof given === "string";
  const address = isAddress ? given.replace(/^(https:\/\/huggingface\.co\/.+?)\/blob\//, "$1/resolve/") : given;
  const file = isAddress ? unescaped(new URL(address).pathname) : given.name;
  const plain = file.replace(/^.*\//, "").replace(/\.gguf$/i, "").trim() || "model";
  const tokenizer = await Tokenizer.fromGGUF(address, { fetch: fetchWithoutReferrer });
  let name = plain;
  for (let number = 2; models.has(name); ++number) name = `${plain} (${number})`;
  models.set(name, tokenizer);
  facts.set(tokenizer, new Map());
  return name;
}

// The page's policy of referrers is not that of its worker.
const fetchWithoutReferrer = (url, options) => fetch(url, { ...options, referrerPolicy: "no-referrer" });

function unescaped(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // a % that begins no byte
  }
}

const ANSWERS = {
  open: (_, { model }) => openModel(model),
  close: (_, { model }) => models.delete(model),
  "v1/models": async () => {
    if (!models.size) await openModel(new URL("gpt2.gguf", import.meta.url).href);
    return { data: [...models.keys()].map((id) => ({ id })) };
  },
  "v1/tokens": tokensOf,
  "v1/vocabulary": vocabularyOf,
};

addEventListener("message", async ({ data: { number, path, body } }) => {
  try {
    postMessage({ number, answer: await ANSWERS[path](models.get(body?.model), body) });
  } catch (error) {
    postMessage({ number, failure: error.key ? `key '${error.key}': ${error.message}` : error.message });
  }
});

function tokensOf(tokenizer, body) {
  if (body.ids) return ofIds(tokenizer, body.ids);
  const bytes = utf8.encode(body.text);
  if (bytes.length > MOST_SHOWN) throw new Error(`The text has ${bytes.length} bytes; the limit here is ${MOST_SHOWN}.`);
  const options = { addSpecial: body.add_special, parseSpecial: body.parse_special };
  const { ids, offsets } = tokenizer.encodeWithOffsets(bytes, options);
  return ofTokens(tokenizer, [...ids], [...offsets], body.text, bytes.length);
}

function ofIds(tokenizer, ids) {
  const size = tokenizer.vocabularySize;
  const outside = ids.find((id) => id < 0 || id >= size);
  if (outside !== undefined) {
    throw new Error(`Token id ${outside} is out of range: the vocabulary has ids 0 to ${size - 1}.`);
  }
  const pieces = ids.map((id) => tokenizer.piece(id));
  const spans = [];
  let end = 0;
  for (const piece of pieces) spans.push(end, (end += piece.length));
  const bytes = new Uint8Array(end);
  pieces.forEach((piece, index) => bytes.set(piece, spans[2 * index]));
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  return { ...ofTokens(tokenizer, ids, spans, text, end), text };
}

const ofTokens = (tokenizer, ids, spans, text, bytes) => ({
  ids,
  spans,
  tokens: Object.fromEntries([...new Set(ids)].filter((id) => id >= 0).map((id) => [id, tokenOf(tokenizer, id)])),
  characters: charactersOf(text),
  bytes,
});

function charactersOf(text) {
  let count = text.length;
  for (let i = 0; i < text.length; ++i) if (text.charCodeAt(i) >> 10 === 0x36) --count; // the first half of a pair
  return count;
}

function tokenOf(tokenizer, id) {
  const known = facts.get(tokenizer);
  if (!known.has(id)) {
    const bytes = tokenizer.piece(id);
    const types = tokenizer.attributes(id).map((name) => TYPES[name]);
    known.set(id, {
      piece: textOf(bytes),
      bytes: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
      text: tokenizer.tokenText(id),
      types,
      special: types.some((type) => SPECIAL.includes(type)),
    });
  }
  return known.get(id);
}

function textOf(bytes) {
  try {
    return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(bytes);
  } catch {
    return null; // a part of a character
  }
}

function vocabularyOf(tokenizer, { query }) {
  const part = latin1(utf8.encode(query));
  const found = [];
  for (let id = 0; id < tokenizer.vocabularySize; ++id) {
    const piece = latin1(tokenizer.piece(id));
    if (piece.includes(part)) found.push([piece.length, id]);
  }
  found.sort(([one, id], [other, another]) => one - other || id - another);
  let ids = found.map(([, id]) => id);
  if (/^\d{1,9}$/.test(query) && Number(query) < tokenizer.vocabularySize) {
    ids = [Number(query), ...ids.filter((id) => id !== Number(query))];
  }
  return { found: ids.slice(0, MOST_FOUND).map((id) => ({ id, ...tokenOf(tokenizer, id) })), count: ids.length };
}

// Bytes as a string of as many characters, to be searched.
const latin1 = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
