// Shows the text of a token with everything visible.

import { element, number } from "./dom.js";

export const SHOWN_OF_PIECE = 200; // characters
const MOST_LISTED = 4; // names

// Spaces, invisible characters except a joiner between two emojis, whose effect is visible, and marks that a token begins
// with, which would stand on the token before it.
const MARKED =
  /^\p{M}+| +|(?!(?<=[\u2600-\u27bf\ufe0f\u{1f000}-\u{1fbff}])\u200d[\u2600-\u27bf\u{1f000}-\u{1fbff}])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?! )\p{Zs}/gu;
const CIRCLE = "\u25cc"; // bears a mark that stands alone
const UNSEEN_MARK = /\p{Default_Ignorable_Code_Point}/u;
const ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character) {
  const code = character.codePointAt(0);
  if (code >= 0xdc80 && code < 0xdd00) return `\\x${(code - 0xdc00).toString(16)}`; // stands for a byte
  if (character in ESCAPES) return ESCAPES[character];
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

// What is shown in place of something that is marked.
function visible(found) {
  if (found[0] === " ") return found;
  const isMark = /^\p{M}/u.test(found) && !UNSEEN_MARK.test(found);
  return isMark ? CIRCLE + found : Array.from(found, escaped).join("");
}

// Bytes that are not UTF-8, with printable ASCII as characters.
const readBytes = (hex) =>
  hex.replace(/../g, (byte) => (byte >= "20" && byte < "7f" ? String.fromCharCode(parseInt(byte, 16)) : `\\x${byte}`));

// A token's text with everything visible: spaces as dots, invisible characters and bytes that are not UTF-8 as escapes.
export function shown(token) {
  if (token.piece == null)
    return element(
      "bdi",
      { dir: "ltr" },
      ...readBytes(token.bytes)
        .split(/( +|(?:\\x[\da-f]{2})+)/)
        .map((part) => {
          const kind = part[0] === " " ? "space" : part[0] === "\\" ? "esc" : "";
          return kind ? element("span", { className: kind }, part) : part;
        }),
    );
  if (!token.piece) return element("span", { className: "esc" }, "∅");
  const characters = Array.from(token.piece);
  const text = characters.slice(0, SHOWN_OF_PIECE).join("");
  const made = element("bdi", { dir: "ltr" });
  let end = 0;
  for (const match of text.matchAll(MARKED)) {
    const seen = visible(match[0]),
      className = seen[0] === " " ? "space" : seen[0] === CIRCLE ? "mark" : "esc";
    made.append(text.slice(end, match.index), element("span", { className }, seen));
    end = match.index + match[0].length;
  }
  made.append(text.slice(end));
  if (characters.length > SHOWN_OF_PIECE) {
    made.append(element("span", { className: "esc" }, `… ${number(characters.length - SHOWN_OF_PIECE)} more`));
  }
  return made;
}

export const inWords = (token) =>
  token.piece == null
    ? readBytes(token.bytes)
    : token.piece.slice(0, 80).replace(MARKED, visible);

// Names that anybody may have given, with everything visible; of many, the first ones.
export function listed(names) {
  const written = names.slice(0, MOST_LISTED).map((name) => `"${inWords({ piece: name })}"`);
  if (names.length > MOST_LISTED) written.push(`${number(names.length - MOST_LISTED)} more`);
  const last = written.pop();
  return written.length ? `${written.join(", ")} and ${last}` : last;
}

export const typeOf = (token) => token.types.join(", ").toLowerCase().replaceAll("_", " ");
export const hexOf = (token) => token.bytes.replace(/../g, "$& ").trim() || "none";

// The same rule as for reports (analysis/views/html_page.py).
const hueOf = (id) => ((id * 137.508) % 360).toFixed(1);
export const colored = (id) => (id == null ? {} : { "--hue": hueOf(id) });
export const chip = (token, id = null, classes = "") =>
  element("span", { className: `token ${id == null ? "" : "of-id "}${classes}`.trim(), ...colored(id) }, shown(token));
