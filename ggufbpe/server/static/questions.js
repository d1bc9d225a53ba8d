// Questions about the first result: why a piece is not used, and why other ids were expected; and about its model.

import { smallestOf } from "./comparison.js";
import { $, counted, element, idsIn, number } from "./dom.js";
import { chip } from "./pieces.js";
import { ask } from "./server.js";
import { drawn, questionOf, shownModels, state } from "./state.js";

const MOST_EXPLANATIONS = 3; // of expected ids; further ones are folded away

const refuse = (place, words) => place.replaceChildren(element("p", { className: "bad" }, words));

// Asks the server about the first result and draws the answer.
async function answer(place, words, put) {
  const [result] = drawn.results;
  if (!result) return refuse(place, "There are no tokens to ask about.");
  await answerOf(result.request.model, place, words, () => put(result));
}

// Draws the answer of a model, unless another question has been asked meanwhile; until then, `words` say what is being
// done.
async function answerOf(model, place, words, put) {
  const mine = (place.question = {});
  place.replaceChildren(element("p", { className: "muted" }, words));
  try {
    const made = await put();
    if (shownModels().length > 1) made.unshift(element("p", { className: "muted" }, `Of ${model}:`));
    if (place.question === mine) place.replaceChildren(...made);
  } catch (error) {
    if (place.question === mine) refuse(place, error.message);
  }
  if (place.question === mine) place.question = null;
}

// Removes an answer about tokens that are no longer shown, or says that one that is still awaited will not come.
export function forgetAnswer(place) {
  const words = "The input changed before there was an answer. Ask again.";
  place.replaceChildren(...(place.question ? [element("p", { className: "bad" }, words)] : []));
  place.question = null;
}

export function askPiece(event) {
  event.preventDefault();
  const { piece } = state;
  answer($("piece-answer"), "Tracing the text …", async (result) => {
    const { sentences } = await ask("v1/why", { ...questionOf(result), piece });
    return sentences.map((sentence) =>
      element("p", {}, ...sentence.map((part) => (typeof part === "string" ? part : chip({ piece: part.text })))),
    );
  });
}

export function askIds(event) {
  event.preventDefault();
  const place = $("ids-answer");
  let ids;
  try {
    ids = idsIn(state.expected);
  } catch (error) {
    return refuse(place, error.message);
  }
  if (!ids.length) return refuse(place, "The list contains no ids.");
  const words = "Looking for settings of the model that would give these ids. This can take some seconds …";
  answer(place, words, async (result) => {
    const found = await ask("v1/diagnose", { ...result.request, ids });
    if (found.match) return [element("p", { className: "good" }, "These are the ids that the model gives.")];
    const parting = await ask("v1/parting", { ...questionOf(result), ids });
    return [...explanationsOf(found), ...expectedBeside(parting, !result.request.messages)];
  });
}

// Tokens that contain some text, or have an id: of the first model with a result, or else of the first model shown.
export function askVocabulary(event) {
  event.preventDefault();
  const model = drawn.results[0]?.request.model ?? shownModels()[0];
  answerOf(model, $("vocabulary-answer"), "Searching the vocabulary …", async () => {
    const { found, count } = await ask("v1/vocabulary", { model, query: state.query });
    if (!found.length) return [element("p", {}, "No token contains that.")];
    const words =
      count > found.length ? `${number(found.length)} of ${counted(count, "token")}` : counted(count, "token");
    return [
      element("p", { className: "muted" }, words),
      element(
        "div",
        { className: "symbols" },
        ...found.flatMap((token) => [
          chip(token, token.id, token.special ? "special" : ""),
          element("span", { className: "id" }, String(token.id)),
        ]),
      ),
    ];
  });
}

function explanationsOf({ explanations }) {
  if (!explanations.length) return [element("p", {}, "No known cause explains these ids.")];
  const others = explanations.slice(MOST_EXPLANATIONS);
  const made = [
    element("h3", {}, "Possible causes"),
    element("ol", {}, ...explanations.slice(0, MOST_EXPLANATIONS).map(explanationOf)),
  ];
  if (others.length) {
    const summary = element("summary", {}, `${counted(others.length, "other explanation")}`);
    made.push(
      element("details", {}, summary, element("ol", { start: MOST_EXPLANATIONS + 1 }, ...others.map(explanationOf))),
    );
  }
  return made;
}

const explanationOf = (explanation) =>
  element(
    "li",
    {},
    ...explanation.causes.map((cause) =>
      element("p", {}, element("strong", {}, cause.id), ` ${cause.detail.what ?? ""}`),
    ),
    explanation.explains < 1
      ? element("p", { className: "muted" }, `explains ${Math.round(explanation.explains * 100)}% of the ids`)
      : null,
    explanation.fix ? element("pre", {}, explanation.fix) : null,
    explanation.objection
      ? element("p", { className: "muted" }, `No command is proposed: ${explanation.objection}`)
      : null,
  );

// The first place where expected ids differ from the model's, and the smallest text that shows it.
function expectedBeside({ differences, smallest }, isText) {
  const [difference] = differences;
  if (!difference) return [];
  const isCut = difference.causes.some((cause) => cause.id === "truncated"); // behind all steps of the model
  const head = isCut ? "First difference" : `First difference, in this step: ${difference.step}`;
  const made = [element("h3", {}, head), alignedOf(difference.first)];
  if (smallest && isText) {
    const take = () => {
      $("expected").value = state.expected = smallest.theirs.join(" ");
    };
    made.push(element("p", {}, ...smallestOf(smallest.text, take)));
  }
  return made;
}

// The tokens of both sides around a difference, as in the report of `ggufbpe verify --html`.
function alignedOf({ ours, theirs }) {
  const side = (tokens) =>
    element(
      "div",
      { className: "side" },
      ...(tokens.length
        ? tokens.map((token) =>
            element(
              "span",
              {},
              chip({ piece: token.piece }, token.id, token.differs ? "differs" : ""),
              element("span", { className: "id" }, String(token.id)),
            ),
          )
        : [chip({ piece: "" }, null, "differs")]),
    );
  const stretch = (start, ...sides) =>
    element(
      "div",
      { className: "stretch" },
      element("span", { className: "byte" }, `byte ${number(start)}`),
      ...sides.flatMap(([name, tokens]) => [element("span", {}, name), side(tokens)]),
    );
  const differing = (token) => token.differs,
    first = ours.findIndex(differing),
    other = theirs.findIndex(differing),
    before = Math.max(first, other),
    start = (ours[first] ?? theirs[other]).start;
  const rest = (tokens) => tokens.slice(tokens.findLastIndex(differing) + 1);
  const behind = rest(first < 0 ? theirs : ours);
  return element(
    "div",
    { className: "aligned" },
    before > 0 ? stretch(ours[0].start, ["both", ours.slice(0, before)]) : null,
    stretch(start, ["ours", ours.filter(differing)], ["expected", theirs.filter(differing)]),
    behind.length ? stretch(behind[0].start, ["both", behind]) : null,
  );
}
