// The chosen token, and the steps by which its word became tokens.

import { $, counted, element, number, range } from "./dom.js";
import { chip, hexOf, inWords, typeOf } from "./pieces.js";
import { PLACE, ask } from "./server.js";
import { questionOf } from "./state.js";
import { spanOf } from "./token_view.js";

const EXPLAINED_AT_ONCE = 100_000; // characters; in a longer text, the steps of a word take a further click
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

export async function showDetails(view, index) {
  const { result, model } = view,
    id = result.ids[index],
    token = view.token(index),
    [start, end] = spanOf(result, index);
  const facts = [
    ["Token", chip(token, id)],
    ["Id", String(id)],
    ["Bytes", element("code", {}, hexOf(token))],
    ["In the vocabulary", element("code", {}, inWords({ piece: token.text }))],
    ["Type", typeOf(token)],
    ["Place", `token ${number(index + 1)} of ${number(result.ids.length)}, ${range(start, end)}`],
  ];
  const steps = element("div", { "aria-live": "polite" });
  $("details").replaceChildren(
    element("h2", {}, `Token ${number(index + 1)} of ${model}`),
    element(
      "dl",
      { className: "facts" },
      ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    ),
    steps,
  );
  bringIntoView();
  if (result.request.ids) return; // they need not be those of their text, so there is no word to show
  if (PLACE === "browser") {
    const words = ["How a token came about is shown by the page of ", element("code", {}, "ggufbpe serve"), "."];
    steps.append(element("p", { className: "muted" }, ...words));
    return;
  }
  const explain = async () => {
    steps.replaceChildren(element("p", { className: "muted" }, "Tracing the word …"));
    try {
      const found = await ask("v1/word", { ...questionOf(result), token: index });
      steps.replaceChildren(...wordOf(found));
    } catch (error) {
      steps.replaceChildren(element("p", { className: "bad" }, error.message));
    }
    if (steps.isConnected) bringIntoView(); // not if another token was chosen meanwhile
  };
  if (result.text.length <= EXPLAINED_AT_ONCE) await explain();
  else steps.append(element("button", { type: "button", onclick: explain }, "Show how it was made"));
}

// With several models on a narrow screen, the details are far below the token.
function bringIntoView() {
  const { top, bottom } = $("details").getBoundingClientRect();
  if (top >= 0 && bottom <= innerHeight) return;
  $("tip").hidden = true; // it would stay where the token was
  $("details").scrollIntoView({ block: "nearest", behavior: STILL.matches ? "instant" : "smooth" });
}

function wordOf(found) {
  const word = found.in_word;
  if (!word)
    return [
      element(
        "p",
        {},
        found.origin === "symbol" ? "It is not part of a word." : `Origin: ${found.origin.replaceAll("_", " ")}.`,
      ),
    ];
  const made = [element("h3", {}, `Its word, ${range(word.start, word.end)}`)];
  if (word.whole) made.push(element("p", {}, `The word is a token itself and is not merged (${word.whole}).`));
  else if (word.merges.length) made.push(replayOf(word));
  if (word.lattice) made.push(latticeOf(word.lattice));
  if (word.matches.length) made.push(matchesOf(word.matches));
  made.push(
    element(
      "div",
      { className: "symbols" },
      ...word.symbols.flatMap((symbol) => [
        chip(word.shown[symbol.text], symbol.ids[0]),
        element("span", { className: "id" }, symbol.ids.join(" ")),
      ]),
    ),
  );
  return made;
}

// The symbols of a word after each of its merges.
function replayOf(word) {
  const read = (symbol) => inWords(word.shown[symbol]),
    frames = [{ symbols: Array.from(word.written), at: -1, words: "the characters of the word" }];
  for (const merge of word.merges) {
    const symbols = [...frames.at(-1).symbols];
    symbols[merge.position] = merge.left + merge.right;
    symbols[merge.position + Array.from(merge.left).length] = "";
    const weight = merge.score == null ? `rank ${number(merge.rank)}` : `score ${merge.score}`;
    frames.push({ symbols, at: merge.position, words: `${read(merge.left)} + ${read(merge.right)}, ${weight}` });
  }
  const symbols = element("div", { className: "symbols" }),
    words = element("span", { className: "muted" });
  const slider = element("input", {
    type: "range",
    min: 0,
    max: frames.length - 1,
    value: frames.length - 1,
    "aria-label": "Merge",
    oninput: () => show(Number(slider.value)),
  });
  let timer = 0;
  const show = (step) => {
    const frame = frames[step];
    slider.value = step;
    slider.setAttribute("aria-valuetext", `${step} of ${frames.length - 1}: ${frame.words}`);
    words.textContent = `${step} of ${counted(frames.length - 1, "merge")}: ${frame.words}`;
    symbols.replaceChildren(
      ...frame.symbols.flatMap((text, at) =>
        text ? [chip(word.shown[text], null, at === frame.at ? "new" : "")] : [],
      ),
    );
  };
  const play = () => {
    clearInterval(timer);
    if (STILL.matches) return show(frames.length - 1);
    let step = 0;
    show(0);
    timer = setInterval(
      () => (step < frames.length - 1 && symbols.isConnected ? show(++step) : clearInterval(timer)),
      600,
    );
  };
  const step = (by) => {
    clearInterval(timer);
    show(Math.min(Math.max(Number(slider.value) + by, 0), frames.length - 1));
  };
  show(frames.length - 1);
  return element(
    "div",
    {},
    element(
      "div",
      { className: "replay" },
      element("button", { type: "button", onclick: play }, "Replay"),
      element("button", { type: "button", "aria-label": "One merge back", onclick: () => step(-1) }, "‹"),
      slider,
      element("button", { type: "button", "aria-label": "One merge on", onclick: () => step(1) }, "›"),
      words,
    ),
    symbols,
  );
}

function table(heads, rows) {
  return element(
    "div",
    { className: "scroll" },
    element(
      "table",
      {},
      element("tr", {}, ...heads.map((head) => element("th", {}, head))),
      ...rows.map(([isBest, ...cells]) =>
        element("tr", { className: isBest ? "best" : "" }, ...cells.map((cell) => element("td", {}, cell))),
      ),
    ),
  );
}

function latticeOf(lattice) {
  const best = new Set(lattice.best.edges.map((edge) => `${edge.position} ${edge.length} ${edge.token}`));
  const path = (one) =>
    element(
      "div",
      { className: "symbols" },
      ...one.edges.map((edge) => chip({ piece: edge.text }, edge.token)),
      element("span", { className: "muted" }, ` ${one.score}`),
    );
  const rows = lattice.edges.map((edge) => [
    best.has(`${edge.position} ${edge.length} ${edge.token}`),
    String(edge.position),
    chip({ piece: edge.text }, edge.token),
    String(edge.token ?? "unknown"),
    String(edge.score),
  ]);
  return element(
    "div",
    {},
    element("h3", {}, "The best path"),
    path(lattice.best),
    ...(lattice.next_best ? [element("h3", {}, "The next best"), path(lattice.next_best)] : []),
    element(
      "details",
      {},
      element("summary", {}, `${counted(rows.length, "edge")} of the lattice`),
      table(["Byte", "Piece", "Id", "Score"], rows),
    ),
  );
}

function matchesOf(matches) {
  return table(
    ["Byte", "Tried, shortest first", "Taken"],
    matches.map((match) => [
      false,
      String(match.position),
      element(
        "span",
        { className: "symbols" },
        ...match.tried.map((tried) =>
          chip({ piece: tried.text }, tried.token, tried.token === match.taken ? "new" : ""),
        ),
      ),
      String(match.taken ?? "nothing"),
    ]),
  );
}
