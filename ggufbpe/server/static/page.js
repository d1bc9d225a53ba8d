// The page of `ggufbpe serve`: takes a text or a chat, and shows its tokens and how they came about.
//
//     input -> state -> /v1/tokens for each model -> TokenView -> the chosen token -> /v1/explain
//
// It talks only to the server that it came from, or opens models in the browser (server.js). All text is inserted
// as text nodes: nothing from a model, a file or a message is ever markup.

import { addTool, drawMessages, nextMessage, openChat } from "./chat_editor.js";
import { chatOf } from "./chat_prompt.js";
import { besides, drawReference, referenceOf, ringsOf, showParting } from "./comparison.js";
import { $, counted, element, isCopied, readText, say, sortFiles } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { drawModels, listenToModels, loadModels, openModels, roomOf } from "./models.js";
import { listed } from "./pieces.js";
import { askIds, askPiece, askVocabulary, forgetAnswer } from "./questions.js";
import { PLACE, ask, useKey, whenRefused } from "./server.js";
import { absentNote, changed, changedSoon, drawn, loadState, replaced, requestFor } from "./state.js";
import { saveState, shownModels, state, whenChanged } from "./state.js";
import { TokenView, placeViews, refusalOf } from "./token_view.js";
import { showDetails } from "./word_steps.js";

const LONGEST_OF_ANY_DIRECTION = 100_000; // characters of a text whose direction the browser finds
const AT_ONCE = 400; // ms, in which most answers come; words that come and go with each keystroke would only disturb
const TABS = ["text", "chat", "ids"];
const views = new Map(); // model -> TokenView
let asked = null; // the AbortController of the current requests
let failure = ""; // of the current requests
let note = ""; // on the address or on files, until the next change
let waiting = 0; // the timer of the words on what is waited for

// Says all that is to be said now, or else `otherwise`.
function sayStatus(otherwise = "") {
  const lines = [failure, note, absentNote()].filter(Boolean);
  say(lines.join("\n") || otherwise, lines.length > 0);
}

// Chats need a server (index.html says so).
const hasTokens = () => PLACE === "server" || state.tab !== "chat";

async function refresh() {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  saveState();
  $("tip").hidden = true;
  failure = note = "";
  clearTimeout(waiting);
  $("output").hidden = !hasTokens();
  if (!hasTokens()) return sayStatus();
  let requests;
  try {
    requests = shownModels().map(requestFor);
  } catch (error) {
    $("output").classList.add("stale"); // what is shown is of what was there before
    failure = error.message;
    return sayStatus();
  }
  const models = listed(requests.map(({ model }) => model));
  waiting = setTimeout(() => sayStatus(`Waiting for the tokens of ${models} …`), AT_ONCE);
  const answers = await Promise.allSettled(requests.map((request) => ask("v1/tokens", request, signal)));
  if (signal.aborted) return;
  clearTimeout(waiting);
  drawn.signal = signal;
  drawn.results = answers.flatMap(({ value }, index) =>
    value ? [{ ...value, request: requests[index], text: requests[index].text ?? value.prompt ?? value.text }] : [],
  );
  const refusals = new Map(
    answers.flatMap(({ reason }, index) => (reason ? [[requests[index].model, reason.message]] : [])),
  );
  const isDown = !drawn.results.length && new Set(refusals.values()).size === 1;
  $("output").classList.toggle("stale", isDown && views.size > 0);
  failure = isDown ? [...refusals.values()][0] : "";
  sayStatus();
  if (!isDown) draw(refusals);
}

// Draws the results, and what the models say that refused.
function draw(refusals) {
  const { results } = drawn,
    byModel = new Map(results.map((result) => [result.request.model, result])),
    reference = referenceOf(results);
  const texts = new Set(results.map((result) => result.text));
  const isCompared = results.length > 1 && texts.size === 1 && state.tab !== "ids";
  const rings = isCompared ? ringsOf(results) : results.map(() => new Set());
  for (const model of [...views.keys()]) if (!byModel.has(model)) views.delete(model);
  for (const model of byModel.keys()) {
    if (!views.has(model)) views.set(model, new TokenView(model, showDetails, linkAll));
  }
  placeViews(shownModels().map((model) => views.get(model)?.element ?? refusalOf(model, refusals.get(model))));
  results.forEach((result, index) => {
    const { model } = result.request;
    const compared = result === reference ? "" : besides(result, reference);
    views.get(model).show(result, rings[index], injectedOf(result), compared, roomOf(model));
  });
  drawLook();
  drawReference();
  $("announcement").textContent = results
    .map((result) => `${result.request.model}: ${counted(result.ids.length, "token")}`)
    .join("; ");
  $("text-of-ids").textContent = state.tab === "ids" && results.length ? `Text: ${results[0].text}` : "";
  $("details").replaceChildren();
  $("parting").replaceChildren();
  for (const place of [$("piece-answer"), $("ids-answer")]) forgetAnswer(place);
  const chats = results.filter((result) => result.parts);
  $("chat").hidden = !chats.length;
  $("chat").replaceChildren(...chats.map((result) => chatOf(result.request.model, result)));
  if (isCompared) showParting();
}

const linkAll = (span) => drawn.results.forEach((result) => views.get(result.request.model)?.link(span));

// How tokens look: as text, ids or both, with marks for spaces or without.
function drawLook() {
  for (const { list } of views.values()) {
    list.dataset.show = state.show;
    list.classList.toggle("unmarked", !state.spaces);
  }
}

const injectedOf = (result) => new Set((result.injected ?? []).map((found) => found.token));

function openTab(name) {
  state.tab = name;
  for (const each of TABS) {
    $(`tab-${each}`).setAttribute("aria-selected", String(each === name));
    $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
    $(`panel-${each}`).hidden = each !== name;
  }
}

function showState() {
  drawModels();
  drawMessages();
  openTab(TABS.includes(state.tab) ? state.tab : "text");
  fillText();
  $("thinking").value = state.thinking;
  $("given-ids").value = state.givenIds;
  for (const name of ["tools", "fields", "piece", "expected", "query"]) {
    $(name).value = state[name];
    $(name).closest("details").open ||= state[name] !== "";
  }
  $("add-special").checked = state.addSpecial;
  $("parse-special").checked = state.parseSpecial;
  $("generation").checked = state.generation;
  $("spaces").checked = state.spaces;
  for (const choice of document.getElementsByName("show")) choice.checked = choice.value === state.show;
}

function listen() {
  const bind = (id, event, name, value) =>
    $(id).addEventListener(event, () => {
      state[name] = $(id)[value];
      changedSoon();
    });
  for (const name of ["piece", "expected", "query"])
    $(name).addEventListener("input", () => {
      state[name] = $(name).value;
      saveState();
    });
  bind("text", "input", "text", "value");
  $("text").addEventListener("beforeinput", ({ data }) => directText(state.text.length + (data?.length ?? 0)));
  bind("given-ids", "input", "givenIds", "value");
  bind("reference", "change", "reference", "value");
  bind("tools", "input", "tools", "value");
  bind("fields", "input", "fields", "value");
  bind("thinking", "change", "thinking", "value");
  bind("add-special", "change", "addSpecial", "checked");
  bind("parse-special", "change", "parseSpecial", "checked");
  bind("generation", "change", "generation", "checked");
  for (const name of TABS)
    $(`tab-${name}`).addEventListener("click", () => {
      if (state.tab === name) return;
      openTab(name);
      refresh();
    });
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    const by = event.key === "ArrowRight" ? 1 : TABS.length - 1;
    openTab(TABS[(TABS.indexOf(state.tab) + by) % TABS.length]);
    $(`tab-${state.tab}`).focus();
    refresh();
  });
  $("add-message").addEventListener("click", () => {
    state.messages.push(nextMessage());
    drawMessages();
    $("messages").lastElementChild.querySelector("textarea").focus();
    refresh();
  });
  for (const id of ["file", "chat-file"]) $(id).addEventListener("change", () => takeFiles([...$(id).files]));
  $("add-tool").addEventListener("click", addTool);
  $("piece-form").addEventListener("submit", askPiece);
  $("ids-form").addEventListener("submit", askIds);
  $("vocabulary-form").addEventListener("submit", askVocabulary);
  $("show").addEventListener("change", (event) => {
    state.show = event.target.value;
    drawLook();
    saveState();
  });
  $("spaces").addEventListener("change", () => {
    state.spaces = $("spaces").checked;
    drawLook();
    saveState();
  });
  $("clear").addEventListener("click", () => {
    takeText("");
    $("text").focus();
  });
  $("examples").append(
    ...Object.entries(EXAMPLES).map(([name, text]) =>
      element("button", { type: "button", onclick: () => takeText(text) }, name),
    ),
  );
  $("share").addEventListener("click", share);
  $("open-help").addEventListener("click", () => $("help").showModal());
  $("close-help").addEventListener("click", () => $("help").close());
  listenToDrops();
  addEventListener("hashchange", async () => {
    const wrong = await loadState();
    showState();
    await refresh();
    tell(wrong);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("tip").hidden = true;
  });
}

// Chromium takes two seconds to find the direction of a megabyte by itself, so it is told the direction before it gets the text.
function directText(length) {
  const dir = length > LONGEST_OF_ANY_DIRECTION ? "ltr" : "auto";
  if ($("text").dir !== dir) $("text").dir = dir;
}

function fillText() {
  directText(state.text.length);
  $("text").value = state.text;
}

function takeText(text) {
  state.text = text;
  fillText();
  return changed();
}

// Returns what to say of the file.
async function openText(file) {
  const { text, note: ofText } = await readText(file);
  openTab("text");
  await takeText(text);
  return ofText;
}

// Opens all models, and of the other files the first one: as a chat on the tab of chats, otherwise as a text.
async function takeFiles(files) {
  const { models, others, notes } = await sortFiles(files);
  const [file] = others,
    isChat = state.tab === "chat" && hasTokens();
  if (others.length > 1) notes.push(`Of ${others.length} ${isChat ? "chats" : "texts"}, one is taken: ${file.name}.`);
  try {
    if (file) notes.push(await (isChat ? openChat : openText)(file));
  } catch (error) {
    notes.push(`${file.name}: ${error.message}`);
  }
  notes.push(await openModels(models));
  tell(notes.filter(Boolean).join("\n"));
}

function tell(words) {
  if (!words) return;
  note = words;
  sayStatus();
}

function listenToDrops() {
  const mark = (isOver) => document.body.classList.toggle("dropping", isOver);
  addEventListener("dragover", (event) => {
    event.preventDefault();
    mark(true);
  });
  addEventListener("dragleave", (event) => event.relatedTarget ?? mark(false));
  addEventListener("drop", (event) => {
    event.preventDefault();
    mark(false);
    takeFiles([...event.dataTransfer.files]);
  });
}

async function share() {
  const isWhole = await saveState();
  const words = !isWhole ? "Too long for an address" : (await isCopied(location.href)) ? "Copied" : "Copy the address";
  $("share").textContent = words;
  setTimeout(() => ($("share").textContent = "Share"), 1500);
}

async function start() {
  try {
    await loadModels();
    drawModels();
    await refresh();
  } catch (error) {
    say($("key-form").hidden ? error.message : "", true);
  }
}

// Asks for the key that the server wants, or for another one.
function askForKey(isRefused) {
  const form = $("key-form");
  if (isRefused) {
    form.hidden = false;
    $("key-refusal").textContent = $("key").value && "The server does not accept this key.";
    $("key").focus();
    $("key").select();
  } else if (!form.hidden) {
    form.hidden = true;
    $(`tab-${state.tab}`).focus(); // what had the focus is gone
  }
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey($("key").value);
  start();
});
for (const part of document.querySelectorAll("[data-for]")) part.hidden = part.dataset.for !== PLACE;
listenToModels();
whenChanged(refresh, showState);
whenRefused(askForKey);
const wrong = await loadState();
showState();
listen();
await start();
if (shownModels().length) tell(wrong); // otherwise, the page says why there are none
