// Elements and words that all parts of the page use.

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

// A span of bytes in words, with its last byte.
export const range = (start, end) =>
  end <= start
    ? `no bytes, at offset ${number(start)}`
    : end - start === 1
      ? `byte offset ${number(start)}`
      : `byte offsets ${number(start)} to ${number(end - 1)}`;
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
  const words = "copy ids";
  button.textContent = (await isCopied(text)) ? "copied" : "the browser refuses to copy";
  setTimeout(() => (button.textContent = words), 1200);
}

// The ids in a text, with anything between them.
export const idsIn = (text) => (text.match(/-?\d+/g) ?? []).map(Number);
