// What is on the page, kept in the fragment of its address, which browsers do not send.

import { MOST_BYTES, idsIn } from "./dom.js";
import { listed } from "./pieces.js";
import { openModel } from "./server.js";

const LONGEST_ADDRESS = 50_000; // characters
const PAUSE = 150; // ms between the last keystroke and the request
export const MOST_MODELS = 4; // shown side by side, and opened at once

export const state = {
  tab: "text",
  models: [],
  text: "Hello world! naïve 者 🙂 1234567\n\tint x = 0;",
  addSpecial: true,
  parseSpecial: true,
  messages: [
    { role: "system", content: "You are terse." },
    { role: "user", content: "What is 2 + 2?" },
  ],
  tools: "", // JSON
  fields: "", // JSON: other fields of the chat's request, which have no control of their own
  generation: true,
  thinking: "",
  givenIds: "",
  show: "text", // of tokens: text, ids or both
  spaces: true, // are marked
  reference: "", // the model that others are compared with; "" for the first
  piece: "",
  expected: "",
  query: "",
};

// The output of a compressing or decompressing stream for some bytes; an error once it has more than `most` bytes.
async function through(stream, bytes, most = Infinity) {
  let size = 0;
  const bounded = new TransformStream({
    transform(part, out) {
      if ((size += part.length) > most) throw new RangeError(`more than ${most} bytes`);
      out.enqueue(part);
    },
  });
  const made = new Blob([bytes]).stream().pipeThrough(stream).pipeThrough(bounded);
  return new Uint8Array(await new Response(made).arrayBuffer());
}

let saving = 0; // counts the saves, so that the last one wins

// Whether all of the state fits into an address.
export async function saveState() {
  const mine = ++saving;
  const bytes = new TextEncoder().encode(JSON.stringify(state)),
    packed = await through(new CompressionStream("deflate-raw"), bytes);
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
  const isWhole = text.length <= LONGEST_ADDRESS && bytes.length <= MOST_BYTES; // so that it can be read again
  if (mine === saving) history.replaceState(null, "", isWhole ? `#${text}` : location.pathname);
  return isWhole;
}

const isOneOf = (...values) => (value) => values.includes(value);

export const FITS = {
  show: isOneOf("text", "ids", "both"),
  thinking: isOneOf("", "on", "off"),
  models: (value) => Array.isArray(value) && value.every((model) => typeof model === "string"),
  messages: (value) => Array.isArray(value) && value.every((message) => typeof message?.role === "string"),
};

// What is wrong with the address, or "".
export async function loadState() {
  if (location.hash.length < 2) return "";
  try {
    const packed = Uint8Array.from(atob(location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/")), (one) =>
      one.charCodeAt(0),
    );
    const bytes = await through(new DecompressionStream("deflate-raw"), packed, MOST_BYTES);
    const found = JSON.parse(new TextDecoder().decode(bytes));
    for (const [name, value] of Object.entries(state)) {
      const fits = FITS[name] ?? ((given) => typeof given === typeof value);
      if (fits(found[name])) state[name] = found[name];
    }
    return "";
  } catch {
    return "The address contains no state of this page.";
  }
}

// What is drawn: the answers of the chosen models, in their order, each with its request and text.
export const drawn = { results: [], signal: null };

let redraw = () => {};
let refill = () => {};

// `drawing` draws the page again after each change of the state, `filling` puts the state into its fields.
export function whenChanged(drawing, filling) {
  redraw = drawing;
  refill = filling;
}

let timer = 0;

export function changed() {
  clearTimeout(timer);
  return redraw();
}

// For changes that do not come from the fields themselves.
export function replaced() {
  refill();
  return changed();
}

// For changes by a keystroke, which may be followed by another one.
export function changedSoon() {
  clearTimeout(timer);
  timer = setTimeout(redraw, PAUSE);
}

export const notChanged = () => clearTimeout(timer);

// Names of the models that are open.
export const known = [];

const chosenModels = () => [...new Set(state.models)];
export const absentModels = () => chosenModels().filter((model) => !known.includes(model));

// The chosen models that are open, or else the first model.
export function shownModels() {
  const open = chosenModels().filter((model) => known.includes(model));
  return (open.length ? open : known.slice(0, 1)).slice(0, MOST_MODELS);
}

// What to say if the address names models that are not open.
export function absentNote() {
  const absent = absentModels();
  if (!absent.length || !known.length) return "";
  const [these, are, open] =
    absent.length > 1
      ? ["the models", "are", "open their files to select them"]
      : ["the model", "is", "open its file to select it"];
  const here = `This link is for ${these} ${listed(absent)}, which ${are} not open here${openModel ? `: ${open}` : ""}.`;
  return `${here} The tokens shown are those of ${listed(shownModels())}.`;
}

const wellFormed = (_, value) => (typeof value === "string" ? value.toWellFormed() : value);

// The value of a field for JSON, whose errors begin with its name; undefined if the field is empty.
export function jsonIn(name, text) {
  try {
    return text.trim() ? JSON.parse(text, wellFormed) : undefined;
  } catch (error) {
    throw new Error(`${name}: ${error.message}`);
  }
}

function isObject(value) {
  return typeof value === "object" && !Array.isArray(value);
}

// The other fields of a chat's request, without those that would make it a question about given ids or a given prompt.
function otherFields() {
  const given = jsonIn("Other fields", state.fields) ?? {};
  if (!isObject(given)) throw new Error("Other fields: Enter a JSON object.");
  if (!isObject(given.chat_template_kwargs ?? {}))
    throw new Error('Other fields: "chat_template_kwargs" must be a JSON object.');
  const own = ["messages", "tools", "add_generation_prompt"].find((name) => name in given);
  if (own) throw new Error(`Other fields: "${own}" has its own control above.`);
  const { ids, expected_prompt, others, ...fields } = given;
  return fields;
}

// The body of the request for a model's tokens.
export function requestFor(model) {
  const request = { model, add_special: state.addSpecial, parse_special: state.parseSpecial };
  if (state.tab === "text") return { ...request, text: state.text.toWellFormed() };
  if (state.tab === "ids") return { model, ids: idsIn(state.givenIds) };
  const messages = JSON.parse(JSON.stringify(state.messages), wellFormed);
  const fields = otherFields();
  const chat = { ...fields, model, messages, add_generation_prompt: state.generation };
  chat.tools = jsonIn("Tools", state.tools);
  if (state.thinking)
    chat.chat_template_kwargs = { ...fields.chat_template_kwargs, enable_thinking: state.thinking === "on" };
  return chat;
}

// The body of further questions about the text of a result, or about the prompt of its chat.
export function questionOf(result) {
  const { model, messages, add_special = true, parse_special = true } = result.request;
  return { model, text: result.text, ...(!messages && { add_special, parse_special }) };
}
