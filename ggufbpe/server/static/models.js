// The models of the page: which of them are chosen, and, where no server has them, opening and closing them.

import { $, element } from "./dom.js";
import { listed } from "./pieces.js";
import { ask, closeModel, openModel } from "./server.js";
import { MOST_MODELS, absentModels, changed, known, replaced, shownModels, state } from "./state.js";

const contexts = new Map(); // model -> the number of tokens that it has room for
const fromFiles = new Map(); // a file's name, size and date -> the name of its model

export const roomOf = (model) => contexts.get(model);

export async function loadModels() {
  const { data } = await ask("v1/models");
  known.splice(0, Infinity, ...data.map((model) => model.id));
  for (const model of data) contexts.set(model.id, model.meta?.n_ctx_train);
}

export function drawModels() {
  if (!state.models.length) state.models = known.slice(0, 1);
  const chosen = shownModels();
  $("models").replaceChildren($("models").querySelector("legend"), ...known.map((model) => choiceOf(model, chosen)));
}

function choiceOf(model, chosen) {
  const box = element("input", {
    type: "checkbox",
    checked: chosen.includes(model),
    disabled: chosen.length >= MOST_MODELS && !chosen.includes(model),
    onchange: (event) => {
      state.models = known
        .filter((one) => (one === model ? event.target.checked : chosen.includes(one)))
        .slice(0, MOST_MODELS);
      if (!state.models.length) state.models = [model];
      drawModels();
      focusOn(known.indexOf(model));
      changed();
    },
  });
  const label = element("label", {}, box, ` ${model}`);
  if (!closeModel || known.length < 2) return label; // one is always open
  const title = `Close ${model}`;
  return element(
    "span",
    {},
    label,
    element("button", { type: "button", title, "aria-label": title, onclick: () => close(model) }, "×"),
  );
}

const focusOn = (index) => $("models").querySelectorAll("input")[index].focus();

async function close(model) {
  const index = known.indexOf(model);
  if (index < 0 || known.length < 2) return; // it is being closed, or so is the other one
  state.models = state.models.filter((other) => other !== model); // before anything else asks for its tokens
  for (const [file, opened] of fromFiles) if (opened === model) fromFiles.delete(file);
  known.splice(index, 1);
  drawModels();
  await closeModel(model);
  await loadModels();
  const redrawn = replaced();
  focusOn(Math.min(index, known.length - 1));
  await redrawn;
}

// Opens a model in the browser: a file, or an address. Several may be under way, beside other work.
async function open(model) {
  const name = model.name ?? model.replace(/^(\w+:\/\/)[^/]*@/, "$1"); // without a password
  const line = element("p", {}, `Opening ${name} …`);
  $("openings").append(line);
  try {
    const file = model instanceof File && `${model.name}/${model.size}/${model.lastModified}`;
    const opened = fromFiles.get(file) ?? (await openModel(model));
    if (file) fromFiles.set(file, opened);
    choose(opened);
    await loadModels();
    line.remove();
    await replaced();
  } catch (error) {
    const isNamed = error.message.startsWith(name) || /^https?:/.test(error.message); // by the whole address
    line.className = "bad";
    line.textContent = isNamed ? error.message : `${name}: ${error.message}`;
  }
}

const forgetFailures = () => $("openings").querySelectorAll(".bad").forEach((line) => line.remove());

// An opened model comes last, so the first one stays what the others are compared with; if there is no room, it replaces
// the last one. A model that the address names keeps its place.
function choose(model) {
  const absent = absentModels();
  if (absent.includes(model)) return;
  const others = shownModels().filter((other) => other !== model);
  state.models = [...others.slice(0, MOST_MODELS - 1), model, ...absent].slice(0, MOST_MODELS);
}

// Opens files of models, and returns what to say of them.
export async function openModels(files) {
  if (!files.length) return "";
  const names = files.map((file) => file.name);
  if (!openModel)
    return `This page opens no models; it has those that its server was started with. Not opened: ${listed(names)}.`;
  forgetFailures();
  for (const file of files.slice(0, MOST_MODELS)) await open(file);
  const rest = names.slice(MOST_MODELS);
  return rest.length ? `At most ${MOST_MODELS} models are opened at once. Not opened: ${listed(rest)}.` : "";
}

export function listenToModels() {
  if (!openModel) return;
  $("model-file").addEventListener("change", () => {
    openModels([...$("model-file").files]);
    $("model-file").value = ""; // so that the file can be chosen again
  });
  $("open-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const address = $("model-address").value.trim();
    if (!address) return;
    forgetFailures();
    open(address);
  });
}
