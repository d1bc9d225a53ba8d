// The editor of a chat: its messages, tool calls and tools.

import { messageColor } from "./chat_prompt.js";
import { capitalized } from "./comparison.js";
import { $, checkSize, element, say } from "./dom.js";
import { FITS, changed, changedSoon, jsonIn, notChanged, replaced, state } from "./state.js";

const ROLES = ["system", "developer", "user", "assistant", "tool"];
const asJSON = new WeakSet(); // messages that are edited as JSON
const PLAIN_FIELDS = new Set(["role", "content", "tool_calls", "tool_call_id"]);
const isPlain = (message) =>
  ["string", "undefined"].includes(typeof (message.content ?? undefined)) &&
  Object.keys(message).every((name) => PLAIN_FIELDS.has(name)) &&
  (message.tool_calls == null ||
    (Array.isArray(message.tool_calls) &&
      message.tool_calls.every((call) => typeof call?.function?.name === "string")));

export function drawMessages() {
  $("messages").replaceChildren(...state.messages.map(messageRow));
}

// Draws the messages anew after their fields have changed, and focuses the element `id`.
function redraw(id) {
  drawMessages();
  $(id)?.focus();
  changed();
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
      title: "All fields of the message, as JSON",
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
      changedSoon();
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
        changedSoon();
      } catch (error) {
        target.setAttribute("aria-invalid", "true");
        notChanged();
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
        placeholder: "Function",
        "aria-label": `Function of ${of}`,
        oninput: (event) => {
          call.function.name = event.target.value;
          changedSoon();
        },
      }),
      element("textarea", {
        rows: 1,
        spellcheck: false,
        value: typeof written === "string" ? written : JSON.stringify(written),
        "aria-label": `Arguments of ${of}, as JSON`,
        oninput: (event) => {
          call.function.arguments = event.target.value;
          changedSoon();
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
      "Answers the call ",
      element("input", {
        value: message.tool_call_id ?? "",
        spellcheck: false,
        "aria-label": `Call that ${name} answers`,
        oninput: (event) => {
          message.tool_call_id = event.target.value;
          changedSoon();
        },
      }),
    ),
  ];
}

// `tool_calls` of a message that was edited as JSON may be anything.
const callIds = () => state.messages.flatMap(({ tool_calls }) => [tool_calls].flat().flatMap((call) => call?.id ?? []));

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
export function nextMessage() {
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

export function addTool() {
  try {
    const tools = jsonIn("Tools", state.tools) ?? [];
    if (!Array.isArray(tools)) throw new Error("Tools: An example can only be added to an array.");
    $("tools").value = state.tools = JSON.stringify([...tools, EXAMPLE_TOOL], null, 2);
    $("tools").rows = 12;
    $("tools").focus();
    changed();
  } catch (error) {
    say(error.message, true);
  }
}

// The file has an array of messages, or the body of a request, whose fields without a control become other fields.
export async function openChat(file) {
  checkSize(file);
  const found = JSON.parse(await file.text());
  const { messages, tools, add_generation_prompt, model, ...fields } = Array.isArray(found)
    ? { messages: found }
    : (found ?? {});
  if (!FITS.messages(messages)) throw new Error("it contains no messages");
  const kwargs = fields.chat_template_kwargs;
  let thinking = "";
  if (typeof kwargs?.enable_thinking === "boolean") {
    thinking = kwargs.enable_thinking ? "on" : "off";
    delete kwargs.enable_thinking;
    if (!Object.keys(kwargs).length) delete fields.chat_template_kwargs;
  }
  Object.assign(state, {
    messages,
    tools: tools == null ? "" : JSON.stringify(tools, null, 2),
    fields: Object.keys(fields).length ? JSON.stringify(fields, null, 2) : "",
    generation: add_generation_prompt ?? true,
    thinking,
  });
  await replaced();
}
