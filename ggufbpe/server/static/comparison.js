// Where models differ, why, and the smallest text that shows it.

import { $, element } from "./dom.js";
import { chip } from "./pieces.js";
import { PLACE, ask } from "./server.js";
import { drawn, questionOf, replaced, state } from "./state.js";
import { spanOf } from "./token_view.js";

const MOST_CHIPS = 8; // tokens of a side that are shown
const EXPLAINED_AT_ONCE = 100_000; // characters
const COMPARED = 4_000; // characters around a difference that are sent to find the cause

// Whether two results are of vocabularies that have the same ids for the same tokens, as far as the text shows.
function areAlike(one, other) {
  const ids = new Map(Object.entries(one.tokens).map(([id, { text }]) => [text, id]));
  return Object.entries(other.tokens).every(
    ([id, { text }]) => (one.tokens[id]?.text ?? text) === text && (ids.get(text) ?? id) === id,
  );
}

function nextWithBytes(result, at) {
  while (at < result.ids.length && result.spans[2 * at] === result.spans[2 * at + 1]) ++at;
  return at;
}

// The numbers of the tokens by which two results differ, of each: of like vocabularies all of them, of others only those
// of the first place where the splits differ, since behind it nothing else can be learned.
export function differencesOf(one, other) {
  const found = [new Set(), new Set()],
    alike = areAlike(one, other);
  let i = 0,
    k = 0;
  // Of unlike vocabularies, a token without bytes, such as BOS, is no part of the split.
  const skipped = (result, at) => (alike ? at : nextWithBytes(result, at));
  while (((i = skipped(one, i)), (k = skipped(other, k)), i < one.ids.length || k < other.ids.length)) {
    const [start, end] = i < one.ids.length ? spanOf(one, i) : [Infinity, Infinity],
      [from, to] = k < other.ids.length ? spanOf(other, k) : [Infinity, Infinity];
    if (start === from && end === to && (!alike || one.ids[i] === other.ids[k])) {
      if (!alike && found[0].size + found[1].size) break;
      ++i;
      ++k;
    } else if (end <= to) {
      found[0].add(i++);
      if (start === from && end === to) found[1].add(k++);
    } else found[1].add(k++);
  }
  return { rings: found, alike };
}

// The result that the others are compared with.
export const referenceOf = (results) =>
  results.find((result) => result.request.model === state.reference) ?? results[0];

export function drawReference() {
  const models = drawn.results.map((result) => result.request.model);
  $("reference-choice").hidden = models.length < 2;
  if (models.length < 2) return;
  $("reference").replaceChildren(...models.map((model) => element("option", { value: model }, model)));
  $("reference").value = referenceOf(drawn.results).request.model;
}

// The rings of each result, by the model that it is compared with.
export function ringsOf(results) {
  const reference = referenceOf(results),
    rings = new Map(results.map((result) => [result, new Set()]));
  for (const other of results) {
    if (other === reference) continue;
    const [ours, theirs] = differencesOf(reference, other).rings;
    ours.forEach((number) => rings.get(reference).add(number));
    theirs.forEach((number) => rings.get(other).add(number));
  }
  return results.map((result) => rings.get(result));
}

// The count compared with the first model's, in words.
export function besides({ ids }, first) {
  const ratio = ids.length / first.ids.length;
  if (!Number.isFinite(ratio) || ids === first.ids) return "";
  const percent = Math.round(Math.abs(ratio - 1) * 100);
  if (ids.length === first.ids.length) return `as many as ${first.request.model}`;
  return `${percent || "less than 1"}% ${ratio > 1 ? "more" : "fewer"} than ${first.request.model}`;
}

// Why the reference differs from the next model with other tokens, and the smallest text that shows it.
export async function showParting() {
  const place = $("parting"),
    words = element("p");
  const { signal, results } = drawn,
    first = referenceOf(results);
  const found = results
    .filter((result) => result !== first)
    .map((result) => [result, differencesOf(first, result)])
    .find(
      ([
        ,
        {
          rings: [ours, theirs],
        },
      ]) => ours.size + theirs.size,
    );
  if (!found) {
    place.append(element("p", { className: "muted" }, "All models split the text alike."));
    return;
  }
  const [other, { rings, alike }] = found;
  const at = rings[0].size ? spanOf(first, rings[0].values().next().value) : spanOf(other, [...rings[1]][0]);
  place.append(words);
  try {
    words.append(
      ...(alike ? await causesOf(first, other, at[0], signal) : await splitsOf(first, other, rings, signal)),
    );
  } catch (error) {
    if (error.name !== "AbortError") place.append(element("p", { className: "bad" }, error.message));
  }
}

// What two models of unlike vocabularies make of the first place where their splits differ, and why.
async function splitsOf(first, other, rings, signal) {
  const sides = [first, other].map((result, one) => [result, [...rings[one]]]);
  const made = [
    `The vocabularies are different, so the splits are compared. Rings mark the first place where they differ: `,
    ...sides.flatMap(([result, numbers]) => [
      `${result.request.model} has `,
      ...numbers.slice(0, MOST_CHIPS).map((at) => chip(result.tokens[result.ids[at]], result.ids[at])),
      numbers.length > MOST_CHIPS ? " …" : "",
      result === first ? ", " : ". ",
    ]),
  ];
  if (PLACE === "browser" || first.text.length > EXPLAINED_AT_ONCE || sides.some(([, numbers]) => !numbers.length)) return made;
  const words = await Promise.all(
    sides.map(([result, [token]]) => ask("v1/word", { ...questionOf(result), token }, signal)),
  );
  const [one, two] = words.map((found) => found.in_word && `${found.in_word.start} ${found.in_word.end}`);
  if (one && two) {
    const why = one === two ? "Both see one word, but use different tokens." : "They cut other words there.";
    made.push(why);
  }
  return made;
}

// Why two models of like vocabularies differ at a byte, and the smallest text that shows it.
async function causesOf(first, other, byte, signal) {
  if (PLACE === "browser") return ["Rings mark the tokens that differ."];
  const [a, b] = [first, other].map((result) => result.request.model);
  const text = excerpt(first.text, byte);
  const found = await ask("v1/parting", { ...questionOf(first), models: [a, b], text }, signal);
  const difference = found.differences[0];
  if (!difference) return ["Rings mark the tokens that differ."];
  const causes = difference.causes.filter((cause) => cause.detail.problem !== "other model");
  return [
    `Rings mark the tokens that differ. ${a} and ${b} first differ in this step: `,
    element("strong", {}, difference.step),
    ". ",
    ...causes.map((cause) => `${wordsOf(cause)} `),
    ...(difference.smallest ? smallestOf(difference.smallest.text, () => {}) : []),
  ];
}

// The smallest text that shows a difference, and a button to use it; `taken` is called before it is encoded.
export const smallestOf = (text, taken) => [
  "The smallest text that shows it: ",
  text ? chip({ piece: text }) : "the empty text.",
  " ",
  element(
    "button",
    {
      type: "button",
      onclick: () => {
        Object.assign(state, { tab: "text", text });
        taken();
        replaced();
      },
    },
    "Use it as the text",
  ),
];

export const capitalized = (words) => words.replace(/^./u, (first) => first.toUpperCase());

// A cause as a sentence.
export const wordsOf = (cause) => capitalized(cause.detail.what ?? cause.id).replace(/[^.]$/u, "$&.");

// The lines around a byte of a long text.
function excerpt(text, byte) {
  if (text.length <= COMPARED) return text;
  const before = new TextDecoder("utf-8", { ignoreBOM: true }).decode(
    new TextEncoder().encode(text).slice(0, byte),
  ).length;
  const from = text.lastIndexOf("\n", Math.max(0, before - COMPARED / 2)) + 1;
  const cut = text.slice(Math.max(from, before - COMPARED / 2), before + COMPARED / 2);
  return cut.replace(/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/g, ""); // halves of surrogate pairs
}
