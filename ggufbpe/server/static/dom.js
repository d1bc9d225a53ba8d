// Elements, words and files that all parts of the page use.

export const MOST_BYTES = 4 << 20; // of a text, as on a server

export const $ = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) made.style.setProperty(name, value);
    else if (name in made && !name.startsWith("aria")) made[name] = value;
    else if (value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

export const number = (value) => value.toLocaleString("en");
export const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

// A span of bytes in words: counted from 0, with its last byte, and with its length, which tells that this is the last.
export const range = (start, end) =>
  end <= start
    ? `no bytes, at offset ${number(start)}`
    : end - start === 1
      ? `byte offset ${number(start)}`
      : `byte offsets ${number(start)} to ${number(end - 1)} (${number(end - start)} bytes)`;
export const clipped = (text, length) => (text.length > length ? `${text.slice(0, length)} …` : text);

export function say(words, isBad = false) {
  $("status").textContent = words;
  $("status").classList.toggle("bad", isBad);
}

// Browsers grant the clipboard only to pages from localhost or https; elsewhere, the selection is copied.
export async function isCopied(text) {
  if (navigator.clipboard)
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  const area = element("textarea", { value: text });
  document.body.append(area);
  area.select();
  const isDone = document.execCommand("copy");
  area.remove();
  return isDone;
}

export async function copy(text, button) {
  const words = "Copy ids";
  button.textContent = (await isCopied(text)) ? "Copied" : "The browser refuses to copy";
  setTimeout(() => (button.textContent = words), 1200);
}

// The ids in a text, separated by anything. An error names a number that is too large for an id, as it was typed.
export const idsIn = (text) =>
  (text.match(/-?\d+/g) ?? []).map((typed) => {
    const id = Number(typed);
    if (id !== (id | 0))
      throw new Error(`${clipped(typed, 30)} does not fit in a signed 32-bit integer, so it is not an id.`);
    return id;
  });

// A model begins with GGUF, whatever its name is.
const isModel = async (file) => (await file.slice(0, 4).text()) === "GGUF" || /\.gguf$/i.test(file.name);

// Divides files into models and others, with notes on those that cannot be read.
export async function sortFiles(files) {
  const sorted = { models: [], others: [], notes: [] };
  for (const file of files) {
    try {
      ((await isModel(file)) ? sorted.models : sorted.others).push(file);
    } catch {
      sorted.notes.push(`${file.name} cannot be read. Is it a folder?`);
    }
  }
  return sorted;
}

export function checkSize(file) {
  if (file.size > MOST_BYTES)
    throw new Error(`The file has ${number(file.size)} bytes; this page takes at most ${number(MOST_BYTES)}.`);
}

// The text of a file with its byte order mark, as on the command line, and what to say of it.
export async function readText(file) {
  checkSize(file);
  const bytes = await file.arrayBuffer();
  const textOf = (options) => new TextDecoder("utf-8", { ignoreBOM: true, ...options }).decode(bytes);
  try {
    return { text: textOf({ fatal: true }), note: "" };
  } catch {
    return {
      text: textOf(),
      note: `${file.name} is not valid UTF-8. Each invalid part is shown, and encoded, as U+FFFD (\ufffd).`,
    };
  }
}
