// The page of `ggufbpe serve`: takes a text or a chat, and shows its tokens and how they came about.
//
//     input -> state -> /v1/tokens for each model -> TokenView -> the chosen token -> /v1/explain
//
// It talks only to the server that it came from. Its state is in the URL's fragment, which browsers do not send.
// All text is inserted as text nodes: nothing from a model, a file or a message is ever markup.

const MOST_MODELS = 4;
const TOKENS_A_BLOCK = 128; // drawn and removed together, as they enter and leave the view
const SHOWN_OF_PIECE = 200; // characters
const EXPLAINED_AT_ONCE = 100_000; // characters; in a longer text, the steps of a word take a further click
const COMPARED = 4_000; // characters around a difference that are sent to find the cause
const LONGEST_ADDRESS = 50_000; // characters
const HEX_OF_TIP = 16 * 3 - 1; // characters: 16 bytes
const MOST_EXPLANATIONS = 3; // of expected ids; further ones are folded away
const PAUSE = 150; // ms between the last keystroke and the request
const ROLES = ["system", "developer", "user", "assistant", "tool"];
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

const state = {
  tab: "text",
  models: [],
  text: "Hello world! naïve 者 🙂 1234567\n\tint x = 0;",
  addSpecial: true,
  parseSpecial: true,
  messages: [
    { role: "system", content: "You are terse." },
    { role: "user", content: "What is 2 + 2?" },
  ],
  tools: "",
  generation: true,
  thinking: "",
  piece: "",
  expected: "",
};

const known = []; // names of the server's models
const views = new Map(); // model -> TokenView
let asked = null; // the AbortController of the current requests
let results = []; // answers of the chosen models, in their order, each with its request and text

const $ = (id) => document.getElementById(id);

// ---- small things ------------------------------------------------------------------------------

function element(tag, properties = {}, ...children) {
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

const number = (value) => value.toLocaleString("en");
const counted = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
const clipped = (text, length) => (text.length > length ? `${text.slice(0, length)} …` : text);

let key = ""; // the API key; it is stored nowhere

async function ask(path, body, signal) {
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: { ...(body && { "Content-Type": "application/json" }), ...(key && { "X-Api-Key": key }) },
    body: body && JSON.stringify(body),
    signal,
  }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not respond.");
  });
  const answer = await response.json().catch(() => ({}));
  $("key-form").hidden = response.status !== 401;
  if (!response.ok) throw new Error(answer.error?.message ?? `The server responded with status ${response.status}.`);
  return answer;
}

function say(words, isBad = false) {
  $("status").textContent = words;
  $("status").classList.toggle("bad", isBad);
}

// Browsers grant the clipboard only to pages from localhost or https; elsewhere, the selection is copied.
async function isCopied(text) {
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

async function copy(text, button) {
  const words = "copy ids";
  button.textContent = (await isCopied(text)) ? "copied" : "the browser refuses to copy";
  setTimeout(() => (button.textContent = words), 1200);
}

// ---- pieces ------------------------------------------------------------------------------------

// Spaces and invisible characters, except a joiner between two emojis: its effect is visible.
const MARKED =
  / +|(?!(?<=[\u2600-\u27bf\ufe0f\u{1f000}-\u{1fbff}])\u200d[\u2600-\u27bf\u{1f000}-\u{1fbff}])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const ESCAPES = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character) {
  const code = character.codePointAt(0);
  if (code >= 0xdc80 && code < 0xdd00) return `\\x${(code - 0xdc00).toString(16)}`; // stands for a byte
  if (character in ESCAPES) return ESCAPES[character];
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

// Bytes that are not UTF-8, with printable ASCII as characters.
const readBytes = (hex) =>
  hex.replace(/../g, (byte) => (byte >= "20" && byte < "7f" ? String.fromCharCode(parseInt(byte, 16)) : `\\x${byte}`));

// A token's text with everything visible: spaces as dots, invisible characters and bytes that are not UTF-8 as escapes.
function shown(token) {
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
    const isSpace = match[0][0] === " ";
    made.append(text.slice(end, match.index));
    made.append(element("span", { className: isSpace ? "space" : "esc" }, isSpace ? match[0] : escaped(match[0])));
    end = match.index + match[0].length;
  }
  made.append(text.slice(end));
  if (characters.length > SHOWN_OF_PIECE) {
    made.append(element("span", { className: "esc" }, `… ${number(characters.length - SHOWN_OF_PIECE)} more`));
  }
  return made;
}

const inWords = (token) =>
  token.piece == null
    ? readBytes(token.bytes)
    : token.piece.slice(0, 80).replace(MARKED, (found) => (found[0] === " " ? found : escaped(found)));
const typeOf = (token) => token.types.join(", ").toLowerCase().replaceAll("_", " ");
const hexOf = (token) => token.bytes.replace(/../g, "$& ").trim() || "none";

// The same rule as for reports (analysis/views/html_page.py).
const hueOf = (id) => ((id * 137.508) % 360).toFixed(1);
const colored = (id) => (id == null ? {} : { "--hue": hueOf(id) });
const chip = (token, id = null, classes = "") =>
  element("span", { className: `token ${id == null ? "" : "of-id "}${classes}`.trim(), ...colored(id) }, shown(token));

// ---- the tokens of one model -------------------------------------------------------------------

class TokenView {
  constructor(model) {
    this.model = model;
    this.count = element("span", { className: "muted" });
    this.copyButton = element(
      "button",
      { type: "button", onclick: () => copy(`[${this.result.ids.join(", ")}]`, this.copyButton) },
      "copy ids",
    );
    this.list = element("div", {
      className: "tokens",
      tabIndex: 0,
      role: "listbox",
      "aria-label": `Tokens of ${model}`,
      onclick: (event) => this.choose(this.numberOf(event.target), true),
      onkeydown: (event) => this.pressed(event),
      onpointermove: (event) => this.point(event),
      onpointerleave: () => ($("tip").hidden = true),
    });
    this.element = element(
      "div",
      { className: "view" },
      element("h2", {}, model, this.count),
      this.list,
      this.copyButton,
    );
    this.observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting, boundingClientRect } of entries)
          isIntersecting ? this.draw(target) : this.clear(target, boundingClientRect.height);
      },
      { root: this.list, rootMargin: "500px 0px" },
    );
    this.chosen = -1;
    this.drawn = new Map(); // id -> element
  }

  // `rings` and `injected` are sets of token numbers; `besides` compares the count with the first model's.
  show(result, rings, injected, besides) {
    Object.assign(this, { result, rings, injected });
    this.chosen = Math.min(this.chosen, result.ids.length - 1);
    this.count.textContent = `${counted(result.ids.length, "token")}${besides}, ${counted(result.characters, "character")}, ${counted(result.bytes, "byte")}`;
    this.observer.disconnect();
    this.starts = this.blockStarts();
    const heights = this.heights();
    const blocks = heights.map((height, index) => {
      const block = element("div", { className: "block", role: "presentation" });
      block.dataset.block = index;
      block.style.height = `${height}px`;
      return block;
    });
    const top = this.list.scrollTop;
    this.list.replaceChildren(...blocks);
    this.list.scrollTop = top;
    blocks.forEach((block) => this.observer.observe(block));
    this.list.removeAttribute("aria-activedescendant");
  }

  // Estimated heights of the blocks in pixels, so that the scroll bar is about right before they are drawn.
  heights() {
    const sample = element("span", { className: "token" }, "0".repeat(10)),
      line = element("div", {}, sample);
    this.list.replaceChildren(line);
    const lineHeight = line.getBoundingClientRect().height,
      ofToken = parseFloat(getComputedStyle(sample).paddingLeft) * 2 + 2,
      ofCharacter = (sample.getBoundingClientRect().width - ofToken + 2) / 10,
      room = line.clientWidth;
    return this.starts.slice(0, -1).map((start, index) => {
      let lines = 0,
        width = 0;
      for (let i = start; i < this.starts[index + 1]; ++i) {
        const token = this.token(i),
          length =
            token.piece == null
              ? token.bytes.length * 2
              : token.piece.length + (token.piece.match(/[\n\r\t]/g)?.length ?? 0);
        const own = Math.min(length, SHOWN_OF_PIECE) * ofCharacter + ofToken;
        if (width === 0 || width + own > room) [lines, width] = [lines + Math.max(1, Math.ceil(own / room)), 0];
        width = token.piece?.endsWith("\n") ? 0 : width + own;
      }
      return lines * lineHeight;
    });
  }

  token(index) {
    return this.result.tokens[this.result.ids[index]];
  }

  // Blocks end at line breaks if possible.
  blockStarts() {
    const count = this.result.ids.length,
      starts = [0];
    for (let at = 0; at < count; at = starts.at(-1)) {
      let end = Math.min(at + TOKENS_A_BLOCK, count);
      for (let i = end; i > at + TOKENS_A_BLOCK / 2 && end < count; --i) {
        if (this.token(i - 1).piece?.endsWith("\n")) {
          end = i;
          break;
        }
      }
      starts.push(end);
    }
    return starts;
  }

  draw(block) {
    if (block.childElementCount) return;
    const index = Number(block.dataset.block),
      made = document.createDocumentFragment();
    for (let i = this.starts[index]; i < this.starts[index + 1]; ++i) {
      const token = this.token(i),
        drawn = this.drawnOnce(this.result.ids[i], token).cloneNode(true);
      drawn.id = this.idOf(i);
      drawn.setAttribute("aria-selected", String(i === this.chosen));
      drawn.classList.toggle("differs", this.rings.has(i));
      drawn.classList.toggle("injected", this.injected.has(i));
      made.append(drawn);
      if (token.piece?.endsWith("\n")) made.append(element("br"));
    }
    block.append(made);
    block.style.height = "";
  }

  // The element of a token, to be cloned for each place where it stands.
  drawnOnce(id, token) {
    if (!this.drawn.has(id)) {
      this.drawn.set(
        id,
        element(
          "span",
          {
            className: token.special ? "token special" : "token of-id",
            role: "option",
            ...colored(id),
            "aria-label": `${inWords(token)}, id ${id}`,
          },
          shown(token),
        ),
      );
    }
    return this.drawn.get(id);
  }

  // The block is not measured: between blocks that are drawn, that would lay out all of them each time.
  clear(block, height) {
    if (!block.childElementCount) return;
    block.style.height = `${height}px`;
    block.replaceChildren();
  }

  idOf(index) {
    return `${this.model}/${index}`;
  }

  numberOf(target) {
    const found = target.closest?.(".token");
    return found ? Number(found.id.slice(this.model.length + 1)) : -1;
  }

  choose(index, isAsked) {
    if (index < 0 || index >= this.result.ids.length) return;
    $(this.idOf(this.chosen))?.setAttribute("aria-selected", "false");
    this.chosen = index;
    this.draw(this.list.children[this.starts.findLastIndex((start) => start <= index)]);
    const found = $(this.idOf(index));
    found.setAttribute("aria-selected", "true");
    found.scrollIntoView({ block: "nearest" });
    this.list.setAttribute("aria-activedescendant", found.id);
    if (isAsked) showDetails(this, index);
  }

  pressed(event) {
    const last = this.result.ids.length - 1,
      now = this.chosen;
    const moves = {
      ArrowRight: now + 1,
      ArrowLeft: Math.max(now - 1, 0),
      Home: 0,
      End: last,
      ArrowDown: this.beneath(1),
      ArrowUp: this.beneath(-1),
      Enter: now,
      " ": now,
    };
    if (!(event.key in moves) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose(Math.min(Math.max(moves[event.key], 0), last), event.key === "Enter" || event.key === " ");
  }

  // The token a line below the chosen one, or above it.
  beneath(direction) {
    const found = $(this.idOf(this.chosen));
    if (!found) return Math.max(this.chosen, 0);
    const place = found.getBoundingClientRect();
    for (let lines = 1; lines <= 3; ++lines) {
      const y = (direction > 0 ? place.bottom : place.top) + direction * lines * place.height * 0.7;
      const there = document
        .elementsFromPoint(place.left + 2, y)
        .find((one) => one.matches?.(".token") && one !== found);
      if (there && this.list.contains(there)) return this.numberOf(there);
    }
    return this.chosen + direction;
  }

  point(event) {
    const index = event.pointerType === "mouse" ? this.numberOf(event.target) : -1,
      tip = $("tip");
    tip.hidden = index < 0;
    if (index < 0) return;
    const [start, end] = spanOf(this.result, index),
      token = this.token(index);
    tip.replaceChildren(
      `id ${this.result.ids[index]} `,
      shown(token),
      element("br"),
      element("code", {}, clipped(hexOf(token), HEX_OF_TIP)),
      element("br"),
      `bytes ${number(start)}–${number(end)}, ${typeOf(token)}, token ${number(index)}`,
    );
    const room = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - room.width - 4))}px`;
    tip.style.top = `${event.clientY + 20 + room.height > innerHeight ? event.clientY - room.height - 10 : event.clientY + 20}px`;
  }
}

const spanOf = (result, index) => [result.spans[2 * index], result.spans[2 * index + 1]];

// The tokens of each result that some other result does not have at the same bytes.
function ringsOf(compared) {
  const keys = compared.map((result) => {
    const found = new Set();
    for (let i = 0; i < result.ids.length; ++i) found.add(result.spans[2 * i] * 2 ** 26 + result.spans[2 * i + 1]);
    return found;
  });
  return compared.map((result, one) => {
    const rings = new Set();
    for (let i = 0; i < result.ids.length; ++i) {
      const key = result.spans[2 * i] * 2 ** 26 + result.spans[2 * i + 1];
      if (keys.some((other, two) => two !== one && !other.has(key))) rings.add(i);
    }
    return rings;
  });
}

// ---- asking ------------------------------------------------------------------------------------

function requestFor(model) {
  const request = { model, add_special: state.addSpecial, parse_special: state.parseSpecial };
  if (state.tab === "text") return { ...request, text: state.text.toWellFormed() };
  const chat = { model, messages: state.messages, add_generation_prompt: state.generation };
  if (state.tools.trim()) chat.tools = JSON.parse(state.tools);
  if (state.thinking) chat.chat_template_kwargs = { enable_thinking: state.thinking === "on" };
  return chat;
}

// The body of further questions about the text of a result, or about the prompt of its chat.
function questionOf(result) {
  const { model, messages, add_special = true, parse_special = true } = result.request;
  return { model, text: result.text, ...(!messages && { add_special, parse_special }) };
}

async function refresh() {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  saveState();
  $("tip").hidden = true;
  let requests;
  try {
    requests = state.models.map(requestFor);
  } catch (error) {
    return say(`Tools: ${error.message}`, true);
  }
  say("…");
  const answers = await Promise.allSettled(requests.map((request) => ask("v1/tokens", request, signal)));
  if (signal.aborted) return;
  results = answers.flatMap(({ value }, index) =>
    value ? [{ ...value, request: requests[index], text: requests[index].text ?? value.prompt }] : [],
  );
  const refused = answers.flatMap(({ reason }, index) =>
    reason ? [requests.length > 1 ? `${requests[index].model}: ${reason.message}` : reason.message] : [],
  );
  say([...new Set(refused)].join("\n"), refused.length > 0);
  draw(results.map((result) => result.request.model));
}

function draw(models) {
  const texts = new Set(results.map((result) => result.text));
  const rings = models.length > 1 && texts.size === 1 ? ringsOf(results) : results.map(() => new Set());
  for (const model of [...views.keys()]) if (!models.includes(model)) views.delete(model);
  models.forEach((model) => views.has(model) || views.set(model, new TokenView(model)));
  $("views").replaceChildren(...models.map((model) => views.get(model).element));
  results.forEach((result, index) =>
    views.get(models[index]).show(result, rings[index], injectedOf(result), besides(result, results[0])),
  );
  $("details").replaceChildren();
  $("parting").replaceChildren();
  for (const place of [$("piece-answer"), $("ids-answer")]) {
    place.question = null; // about what was there before
    place.replaceChildren();
  }
  const chats = results.filter((result) => result.parts);
  $("chat").hidden = !chats.length;
  $("chat").replaceChildren(...chats.map((result) => chatOf(result.request.model, result)));
  if (rings.some((found) => found.size)) showParting();
}

// The count compared with the first model's, in words.
function besides({ ids }, first) {
  const ratio = ids.length / first.ids.length;
  if (!Number.isFinite(ratio) || ids === first.ids) return "";
  const percent = Math.round(Math.abs(ratio - 1) * 100);
  if (ids.length === first.ids.length) return ` (as many as ${first.request.model})`;
  return ` (${percent || "less than 1"}% ${ratio > 1 ? "more" : "fewer"} than ${first.request.model})`;
}

const injectedOf = (result) => new Set((result.injected ?? []).map((found) => found.token));

// Why the first model differs from the next one with other tokens, and the smallest text that shows it.
async function showParting() {
  const place = $("parting"),
    words = element("p", {}, "Ringed tokens are not the same in all models. ");
  const { signal } = asked,
    [first, ...others] = results;
  place.append(words);
  const [other, rings] = others
    .map((result) => [result, ringsOf([first, result])])
    .find(([, [ours, theirs]]) => ours.size + theirs.size);
  const at = rings[0].size ? spanOf(first, rings[0].values().next().value) : spanOf(other, [...rings[1]][0]);
  const [a, b] = [first, other].map((result) => result.request.model);
  const text = excerpt(first.text, at[0]);
  try {
    const found = await ask("v1/parting", { ...questionOf(first), models: [a, b], text }, signal);
    const difference = found.differences[0];
    if (!difference) return;
    const smallest = difference.smallest?.text;
    words.append(
      `${a} and ${b} first differ in this step: `,
      element("strong", {}, difference.step),
      ". ",
      ...difference.causes
        .filter((cause) => cause.detail.problem !== "other model")
        .map((cause) => `${wordsOf(cause)} `),
    );
    if (smallest != null) words.append(...smallestOf(smallest, () => {}));
  } catch (error) {
    if (error.name !== "AbortError") place.append(element("p", { className: "bad" }, error.message));
  }
}

// The smallest text that shows a difference, and a button to use it; `taken` is called before it is encoded.
const smallestOf = (text, taken) => [
  "The smallest text that shows it: ",
  text ? chip({ piece: text }) : "the empty text.",
  " ",
  element(
    "button",
    {
      type: "button",
      onclick: () => {
        openTab("text");
        $("text").value = state.text = text;
        taken();
        refresh();
      },
    },
    "use it as the text",
  ),
];

const capitalized = (words) => words.replace(/^./u, (first) => first.toUpperCase());

// A cause as a sentence.
const wordsOf = (cause) => capitalized(cause.detail.what ?? cause.id).replace(/[^.]$/u, "$&.");

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

// ---- a chat ------------------------------------------------------------------------------------

// The color of a part by its origin, as in analysis/views/explain_page.py; null for the template's own text.
const OF_REQUEST = ["message", "tool", "argument"];
const messageColor = (index) => `hsl(${(index * 67 + 210) % 360} 60% 50%)`;
const originColor = ({ origin, index }) =>
  origin === "message" ? messageColor(index) : OF_REQUEST.includes(origin) ? "var(--muted)" : null;

function chatOf(model, result) {
  const bytes = new TextEncoder().encode(result.prompt),
    decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const prompt = element("pre", { className: "prompt", tabIndex: 0, "aria-label": `The prompt of ${model}` });
  const injected = new Map((result.injected ?? []).map((found) => [found.start, found]));
  for (const part of result.parts) {
    const color = originColor(part),
      made = element("span", { className: color ? "of-request" : "of-template", title: originOf(part) });
    if (color) made.style.setProperty("--of-message", color);
    let at = part.start;
    for (const [start, found] of injected) {
      if (start < at || start >= part.end) continue;
      made.append(
        decoder.decode(bytes.slice(at, start)),
        element("span", { className: "injected" }, decoder.decode(bytes.slice(start, found.end))),
      );
      at = found.end;
    }
    if (at < part.end) made.append(decoder.decode(bytes.slice(at, part.end)));
    prompt.append(made);
  }
  const rows = result.tokens_by_origin.map((share) =>
    element(
      "tr",
      {},
      element(
        "td",
        {},
        originColor(share) ? element("span", { className: "dot", "--of-message": originColor(share) }) : null,
        originOf(share),
      ),
      element("td", {}, share.role ?? ""),
      element("td", { className: "number" }, number(share.tokens)),
    ),
  );
  const warnings = result.injected.map((found) =>
    element("p", { className: "bad" }, `${originOf(found)}: ${found.text} became the special token ${found.id}.`),
  );
  return element(
    "div",
    {},
    element("h2", {}, `The prompt of ${model}`),
    ...warnings,
    prompt,
    element(
      "div",
      { className: "scroll" },
      element(
        "table",
        {},
        element(
          "tr",
          {},
          element("th", {}, "from"),
          element("th", {}, "role"),
          element("th", { className: "number" }, "tokens"),
        ),
        ...rows,
      ),
    ),
  );
}

function originOf(part) {
  const name = part.origin.replaceAll("_", " ");
  return part.index == null
    ? part.origin === "argument"
      ? part.field
      : name
    : `${name} ${part.index + 1}${part.field ? `, ${part.field}` : ""}`;
}

// ---- the editor of a chat ------------------------------------------------------------------------

const asJSON = new WeakSet(); // messages that are edited as JSON
const PLAIN_FIELDS = new Set(["role", "content", "tool_calls", "tool_call_id"]);
const isPlain = (message) =>
  ["string", "undefined"].includes(typeof (message.content ?? undefined)) &&
  Object.keys(message).every((name) => PLAIN_FIELDS.has(name)) &&
  (message.tool_calls == null ||
    (Array.isArray(message.tool_calls) &&
      message.tool_calls.every((call) => typeof call?.function?.name === "string")));

function drawMessages() {
  $("messages").replaceChildren(...state.messages.map(messageRow));
}

// Draws the messages anew after their fields have changed, and focuses the element `id`.
function redraw(id) {
  drawMessages();
  $(id)?.focus();
  refresh();
}

function messageRow(message, index) {
  const name = `message ${index + 1}`,
    isJSON = asJSON.has(message) || !isPlain(message),
    id = `json-of-${index}`;
  const toggle = element(
    "button",
    {
      type: "button",
      id,
      "aria-label": `Edit ${name} as JSON`,
      "aria-pressed": String(isJSON),
      title: "all fields of the message, as JSON",
      disabled: !isPlain(message),
      onclick: () => {
        isJSON ? asJSON.delete(message) : asJSON.add(message);
        redraw(id);
      },
    },
    "{ }",
  );
  const remove = element(
    "button",
    {
      type: "button",
      "aria-label": `Remove ${name}`,
      onclick: () => {
        state.messages.splice(index, 1);
        redraw("add-message");
      },
    },
    "✕",
  );
  return element(
    "li",
    { "--of-message": messageColor(index) },
    element(
      "select",
      {
        "aria-label": `Role of ${name}`,
        id: `role-of-${index}`,
        onchange: (event) => {
          message.role = event.target.value;
          redraw(event.target.id);
        },
      },
      ...[...new Set([...ROLES, message.role])].map((role) =>
        element("option", { value: role, selected: role === message.role }, role),
      ),
    ),
    element(
      "div",
      { className: "fields" },
      ...(isJSON
        ? [jsonArea(message, name, toggle)]
        : [contentArea(message, index), ...callsOf(message, index, name), ...answeredBy(message, name)]),
    ),
    element("div", { className: "buttons" }, toggle, remove),
  );
}

const contentArea = (message, index) =>
  element("textarea", {
    rows: 2,
    dir: "auto",
    value: message.content ?? "",
    "aria-label": `Message ${index + 1}`,
    oninput: (event) => {
      message.content = event.target.value;
      later();
    },
  });

// Invalid JSON leaves the message as it was, and is reported.
function jsonArea(message, name, toggle) {
  const text = JSON.stringify(message, null, 2);
  return element("textarea", {
    rows: Math.min(text.split("\n").length, 16),
    spellcheck: false,
    value: text,
    "aria-label": `JSON of ${name}`,
    oninput: ({ target }) => {
      try {
        const given = JSON.parse(target.value);
        if (!FITS.messages([given])) throw new Error("a message is an object with a role");
        for (const field of Object.keys(message)) delete message[field];
        Object.assign(message, given);
        asJSON.add(message);
        toggle.disabled = !isPlain(message);
        target.removeAttribute("aria-invalid");
        later();
      } catch (error) {
        target.setAttribute("aria-invalid", "true");
        clearTimeout(timer);
        say(`${capitalized(name)}: ${error.message}`, true);
      }
    },
  });
}

// The editor of a message's tool calls.
function callsOf(message, index, name) {
  const calls = message.tool_calls ?? [],
    add = `call-of-${index}`;
  const rows = calls.map((call, number_) => {
    const of = `call ${number_ + 1} of ${name}`;
    const written = call.function.arguments ?? "";
    return element(
      "div",
      { className: "call" },
      element("input", {
        value: call.function.name,
        spellcheck: false,
        placeholder: "function",
        "aria-label": `Function of ${of}`,
        oninput: (event) => {
          call.function.name = event.target.value;
          later();
        },
      }),
      element("textarea", {
        rows: 1,
        spellcheck: false,
        value: typeof written === "string" ? written : JSON.stringify(written),
        "aria-label": `Arguments of ${of}, as JSON`,
        oninput: (event) => {
          call.function.arguments = event.target.value;
          later();
        },
      }),
      element(
        "button",
        {
          type: "button",
          "aria-label": `Remove ${of}`,
          onclick: () => {
            calls.splice(number_, 1);
            if (!calls.length) delete message.tool_calls;
            redraw(add);
          },
        },
        "✕",
      ),
    );
  });
  if (message.role !== "assistant") return rows;
  return [
    ...rows,
    element(
      "button",
      {
        type: "button",
        id: add,
        "aria-label": `Add a tool call to ${name}`,
        onclick: () => {
          const called = { name: toolNames()[0] ?? "", arguments: "{}" };
          message.tool_calls = [...calls, { id: nextCall(), type: "function", function: called }];
          redraw(add);
        },
      },
      "Add a tool call",
    ),
  ];
}

// The editor of the call that a tool's message answers.
function answeredBy(message, name) {
  if (message.role !== "tool" && message.tool_call_id == null) return [];
  return [
    element(
      "label",
      {},
      "answers the call ",
      element("input", {
        value: message.tool_call_id ?? "",
        spellcheck: false,
        "aria-label": `Call that ${name} answers`,
        oninput: (event) => {
          message.tool_call_id = event.target.value;
          later();
        },
      }),
    ),
  ];
}

const callIds = () => state.messages.flatMap((message) => (message.tool_calls ?? []).map((call) => call.id));

// Nine letters and digits, as Mistral's templates require.
function nextCall() {
  const known = new Set(callIds());
  for (let count = 1; ; ++count) {
    const id = `call${String(count).padStart(5, "0")}`;
    if (!known.has(id)) return id;
  }
}

function toolNames() {
  try {
    return JSON.parse(state.tools).flatMap((tool) => tool.function?.name ?? []);
  } catch {
    return [];
  }
}

// A tool's answer if a call is open, otherwise the next turn.
function nextMessage() {
  const answered = new Set(state.messages.map((message) => message.tool_call_id));
  const open = callIds().find((id) => !answered.has(id));
  if (open != null) return { role: "tool", tool_call_id: open, content: "" };
  return { role: state.messages.at(-1)?.role === "user" ? "assistant" : "user", content: "" };
}

const EXAMPLE_TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Returns the weather in a place.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
};

function addTool() {
  try {
    const tools = state.tools.trim() ? JSON.parse(state.tools) : [];
    $("tools").value = state.tools = JSON.stringify([...tools, EXAMPLE_TOOL], null, 2);
    $("tools").rows = 12;
    $("tools").focus();
    refresh();
  } catch (error) {
    say(`Tools: ${error.message}`, true);
  }
}

// The file has an array of messages, or the body of a request.
async function openChat(file) {
  try {
    const found = JSON.parse(await file.text()),
      body = Array.isArray(found) ? { messages: found } : found;
    if (!FITS.messages(body?.messages)) throw new Error("it contains no messages");
    const thinking = body.chat_template_kwargs?.enable_thinking;
    Object.assign(state, {
      messages: body.messages,
      tools: body.tools?.length ? JSON.stringify(body.tools, null, 2) : "",
      generation: body.add_generation_prompt ?? true,
      thinking: thinking == null ? "" : thinking ? "on" : "off",
    });
    showState();
    refresh();
  } catch (error) {
    say(`${file.name}: ${error.message}`, true);
  }
}

// ---- the chosen token --------------------------------------------------------------------------

async function showDetails(view, index) {
  const { result, model } = view,
    id = result.ids[index],
    token = view.token(index),
    [start, end] = spanOf(result, index);
  const facts = [
    ["token", chip(token, id)],
    ["id", String(id)],
    ["bytes", element("code", {}, hexOf(token))],
    ["in the vocabulary", element("code", {}, inWords({ piece: token.text }))],
    ["type", typeOf(token)],
    ["place", `token ${number(index)} of ${number(result.ids.length)}, bytes ${number(start)} to ${number(end)}`],
  ];
  const steps = element("div", { "aria-live": "polite" });
  $("details").replaceChildren(
    element("h2", {}, `Token ${number(index)} of ${model}`),
    element(
      "dl",
      { className: "facts" },
      ...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    ),
    steps,
  );
  const explain = async () => {
    steps.replaceChildren(element("p", { className: "muted" }, "…"));
    try {
      const found = await ask("v1/word", { ...questionOf(result), token: index });
      steps.replaceChildren(...wordOf(found));
    } catch (error) {
      steps.replaceChildren(element("p", { className: "bad" }, error.message));
    }
  };
  if (result.text.length <= EXPLAINED_AT_ONCE) await explain();
  else steps.append(element("button", { type: "button", onclick: explain }, "show how it was made"));
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
  const made = [element("h3", {}, `Its word, bytes ${number(word.start)} to ${number(word.end)}`)];
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
      element("button", { type: "button", onclick: play }, "replay"),
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
      table(["byte", "piece", "id", "score"], rows),
    ),
  );
}

function matchesOf(matches) {
  return table(
    ["byte", "tried, shortest first", "taken"],
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

// ---- questions ---------------------------------------------------------------------------------

// Asks the server about the first result and draws the answer, unless another question has been asked meanwhile.
async function answer(place, put) {
  if (!results.length)
    return place.replaceChildren(element("p", { className: "bad" }, "There are no tokens to ask about."));
  const mine = (place.question = {}),
    [result] = results;
  place.replaceChildren(element("p", { className: "muted" }, "…"));
  try {
    const drawn = await put(result);
    if (results.length > 1) drawn.unshift(element("p", { className: "muted" }, `Of ${result.request.model}:`));
    if (place.question === mine) place.replaceChildren(...drawn);
  } catch (error) {
    if (place.question === mine) place.replaceChildren(element("p", { className: "bad" }, error.message));
  }
}

function askPiece(event) {
  event.preventDefault();
  const { piece } = state;
  answer($("piece-answer"), async (result) => {
    const { sentences } = await ask("v1/why", { ...questionOf(result), piece });
    return sentences.map((sentence) =>
      element("p", {}, ...sentence.map((part) => (typeof part === "string" ? part : chip({ piece: part.text })))),
    );
  });
}

function askIds(event) {
  event.preventDefault();
  const ids = (state.expected.match(/-?\d+/g) ?? []).map(Number),
    place = $("ids-answer");
  if (!ids.length) return place.replaceChildren(element("p", { className: "bad" }, "The list contains no ids."));
  answer(place, async (result) => {
    const found = await ask("v1/diagnose", { ...result.request, ids });
    if (found.match) return [element("p", { className: "good" }, "These are the ids that the model gives.")];
    const parting = await ask("v1/parting", { ...questionOf(result), ids });
    return [...expectedBeside(parting, !result.request.messages), ...explanationsOf(found)];
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
  const made = [element("h3", {}, `First difference, in this step: ${difference.step}`), alignedOf(difference.first)];
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

// ---- the address, and the beginning ------------------------------------------------------------

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

let saving = 0; // counts the saves, so that the last one wins

async function saveState() {
  const mine = ++saving;
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(state)));
  const text = btoa(Array.from(packed, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
  if (mine === saving) history.replaceState(null, "", text.length > LONGEST_ADDRESS ? location.pathname : `#${text}`);
}

const FITS = {
  models: (value) => Array.isArray(value) && value.every((model) => typeof model === "string"),
  messages: (value) => Array.isArray(value) && value.every((message) => typeof message?.role === "string"),
};

// What is wrong with the address, or "".
async function loadState() {
  if (location.hash.length < 2) return "";
  try {
    const packed = Uint8Array.from(atob(location.hash.slice(1).replaceAll("-", "+").replaceAll("_", "/")), (one) =>
      one.charCodeAt(0),
    );
    const found = JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed)));
    for (const [name, value] of Object.entries(state)) {
      const fits = FITS[name] ?? ((given) => typeof given === typeof value);
      if (fits(found[name])) state[name] = found[name];
    }
    return "";
  } catch {
    return "The address contains no state of this page.";
  }
}

let timer = 0;
function later() {
  clearTimeout(timer);
  timer = setTimeout(refresh, PAUSE);
}

function openTab(name) {
  state.tab = name;
  for (const each of ["text", "chat"]) {
    $(`tab-${each}`).setAttribute("aria-selected", String(each === name));
    $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
    $(`panel-${each}`).hidden = each !== name;
  }
}

function drawModels() {
  const boxes = known.map((model) =>
    element(
      "label",
      {},
      element("input", {
        type: "checkbox",
        checked: state.models.includes(model),
        disabled: state.models.length >= MOST_MODELS && !state.models.includes(model),
        onchange: (event) => {
          state.models = known
            .filter((one) => (one === model ? event.target.checked : state.models.includes(one)))
            .slice(0, MOST_MODELS);
          if (!state.models.length) state.models = [model];
          drawModels();
          $("models").querySelectorAll("input")[known.indexOf(model)].focus();
          refresh();
        },
      }),
      ` ${model}`,
    ),
  );
  $("models").replaceChildren($("models").querySelector("legend"), ...boxes);
}

function showState() {
  state.models = state.models.filter((model) => known.includes(model)).slice(0, MOST_MODELS);
  if (!state.models.length) state.models = known.slice(0, 1);
  drawModels();
  drawMessages();
  openTab(state.tab === "chat" ? "chat" : "text");
  $("text").value = state.text;
  $("tools").value = state.tools;
  $("thinking").value = state.thinking;
  for (const name of ["piece", "expected"]) {
    $(name).value = state[name];
    $(name).closest("details").open ||= state[name] !== "";
  }
  $("add-special").checked = state.addSpecial;
  $("parse-special").checked = state.parseSpecial;
  $("generation").checked = state.generation;
}

function listen() {
  const bind = (id, event, name, value) =>
    $(id).addEventListener(event, () => {
      state[name] = $(id)[value];
      later();
    });
  for (const name of ["piece", "expected"])
    $(name).addEventListener("input", () => {
      state[name] = $(name).value;
      saveState();
    });
  bind("text", "input", "text", "value");
  bind("tools", "input", "tools", "value");
  bind("thinking", "change", "thinking", "value");
  bind("add-special", "change", "addSpecial", "checked");
  bind("parse-special", "change", "parseSpecial", "checked");
  bind("generation", "change", "generation", "checked");
  for (const name of ["text", "chat"])
    $(`tab-${name}`).addEventListener("click", () => {
      if (state.tab === name) return;
      openTab(name);
      refresh();
    });
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
    openTab(state.tab === "text" ? "chat" : "text");
    $(`tab-${state.tab}`).focus();
    refresh();
  });
  $("add-message").addEventListener("click", () => {
    state.messages.push(nextMessage());
    drawMessages();
    $("messages").lastElementChild.querySelector("textarea").focus();
    refresh();
  });
  $("file").addEventListener("change", async () => {
    const [file] = $("file").files;
    if (!file) return;
    $("text").value = state.text = await file.text();
    refresh();
  });
  $("add-tool").addEventListener("click", addTool);
  $("chat-file").addEventListener("change", () => {
    const [file] = $("chat-file").files;
    if (file) openChat(file);
  });
  $("piece-form").addEventListener("submit", askPiece);
  $("ids-form").addEventListener("submit", askIds);
  addEventListener("hashchange", async () => {
    const wrong = await loadState();
    showState();
    await refresh();
    if (wrong) say(wrong, true);
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("tip").hidden = true;
  });
}

async function start() {
  try {
    known.splice(0, Infinity, ...(await ask("v1/models")).data.map((model) => model.id));
    showState();
    await refresh();
  } catch (error) {
    say(error.message, true);
  }
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key").value;
  start();
});
const wrong = await loadState();
listen();
await start();
if (wrong && known.length) say(wrong, true);
