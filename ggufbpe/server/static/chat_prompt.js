// The prompt of a chat: what comes from which message, and how many tokens each part has.

import { element, number } from "./dom.js";

// The color of a part by its origin, as in analysis/views/explain_page.py; null for the template's own text.
const OF_REQUEST = ["message", "tool", "argument"];
export const messageColor = (index) => `hsl(${(index * 67 + 210) % 360} 60% 50%)`;
const originColor = ({ origin, index }) =>
  origin === "message" ? messageColor(index) : OF_REQUEST.includes(origin) ? "var(--muted)" : null;

export function chatOf(model, result) {
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
    ...result.notes.map((note) => element("p", { className: "notice" }, note)),
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
          element("th", {}, "From"),
          element("th", {}, "Role"),
          element("th", { className: "number" }, "Tokens"),
        ),
        ...rows,
        element(
          "tr",
          { className: "total" },
          element("td", {}, "total"),
          element("td"),
          element("td", { className: "number" }, number(result.ids.length)),
        ),
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
