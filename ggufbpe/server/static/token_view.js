// The tokens of one model: drawn where they are seen, chosen by mouse and keyboard.

import { $, clipped, copy, counted, element, number, range } from "./dom.js";
import { SHOWN_OF_PIECE, colored, hexOf, inWords, shown, typeOf } from "./pieces.js";

const TOKENS_A_BLOCK = 128; // drawn and removed together, as they enter and leave the view
const NO_TOKEN = { piece: "", bytes: "", text: "", types: [], special: false }; // id -1, where a text has no token
const HEX_OF_TIP = 16 * 3 - 1; // characters: 16 bytes

export class TokenView {
  // `onChosen` is called with this view and the number of a token, `onPointed` with a span of bytes, or with null.
  constructor(model, onChosen, onPointed) {
    Object.assign(this, { model, onChosen, onPointed });
    this.count = element("p", { className: "count" });
    this.stats = element("p", { className: "stats" });
    this.copyButton = element(
      "button",
      { type: "button", onclick: () => copy(`[${this.result.ids.join(", ")}]`, this.copyButton) },
      "Copy ids",
    );
    this.list = element("div", {
      className: "tokens",
      tabIndex: 0,
      role: "listbox",
      "aria-label": `Tokens of ${model}`,
      onclick: (event) => this.choose(this.numberOf(event.target), true),
      onkeydown: (event) => this.pressed(event),
      onpointermove: (event) => event.pointerType === "mouse" && this.point(this.numberOf(event.target), event),
      onpointerleave: () => this.point(-1),
      onblur: () => this.point(-1),
    });
    this.element = element(
      "div",
      { className: "view" },
      element("header", {}, element("h2", {}, model), this.count, this.stats),
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

  // `rings` and `injected` are sets of token numbers; `besides` compares the count with another model's, and `context`
  // is the number of tokens that the model has room for, or nothing.
  show(result, rings, injected, besides, context) {
    Object.assign(this, { result, rings, injected });
    this.chosen = Math.min(this.chosen, result.ids.length - 1);
    const count = result.ids.length;
    this.count.replaceChildren(element("strong", {}, number(count)), count === 1 ? " token" : " tokens");
    this.stats.replaceChildren(
      [
        besides,
        counted(result.characters, "character"),
        counted(result.bytes, "byte"),
        count ? `${(result.characters / count).toFixed(2)} characters per token` : "",
        context ? inContext(count, context) : "",
      ]
        .filter(Boolean)
        .join(" · "),
    );
    this.widths = new Map();
    this.observer.disconnect();
    const top = this.list.scrollTop; // before heights() empties the list
    this.starts = this.blockStarts();
    const heights = this.heights();
    const blocks = heights.map((height, index) => {
      const block = element("div", { className: "block", role: "presentation" });
      block.dataset.block = index;
      block.style.height = `${height}px`;
      return block;
    });
    this.list.replaceChildren(...blocks);
    this.list.scrollTop = top;
    this.drawInView(blocks, heights);
    blocks.forEach((block) => this.observer.observe(block));
    this.list.removeAttribute("aria-activedescendant");
  }

  // Draws what is in view at once: the observer draws with the next frame, and until then the list would be empty.
  drawInView(blocks, heights) {
    const top = this.list.scrollTop; // lower than before if the list is shorter now
    let bottom = 0;
    for (const [index, height] of heights.entries()) {
      if (bottom >= top + innerHeight) break;
      bottom += height;
      if (bottom > top) this.draw(blocks[index]);
    }
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
        const own = this.widthOf(this.result.ids[i]) * ofCharacter + ofToken;
        if (width === 0 || width + own > room) [lines, width] = [lines + Math.max(1, Math.ceil(own / room)), 0];
        width = this.token(i).piece?.endsWith("\n") ? 0 : width + own;
      }
      return lines * lineHeight;
    });
  }

  // The characters that a token takes when it is drawn.
  widthOf(id) {
    if (!this.widths.has(id)) {
      const { piece, bytes } = this.result.tokens[id] ?? NO_TOKEN;
      const length = piece == null ? bytes.length * 2 : piece.length + (piece.match(/[\n\r\t]/g)?.length ?? 0);
      this.widths.set(id, Math.min(length, SHOWN_OF_PIECE));
    }
    return this.widths.get(id);
  }

  token(index) {
    return this.result.tokens[this.result.ids[index]] ?? NO_TOKEN;
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
    block.classList.add("drawn");
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
            "data-id": id,
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
    block.classList.remove("drawn");
    block.style.height = `${height}px`;
    block.replaceChildren();
  }

  // Lights up the tokens that have a byte of a span; none for null.
  link(span) {
    for (const lit of this.list.querySelectorAll(".linked")) lit.classList.remove("linked");
    if (!span) return;
    for (let i = this.firstEndingBehind(span[0]); i < this.result.ids.length; ++i) {
      const [start, end] = spanOf(this.result, i);
      if (start >= span[1]) break;
      if (end > span[0]) $(this.idOf(i))?.classList.add("linked");
    }
  }

  firstEndingBehind(byte) {
    let low = 0,
      high = this.result.ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.result.spans[2 * middle + 1] > byte) high = middle;
      else low = middle + 1;
    }
    return low;
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
    const place = found.getBoundingClientRect();
    this.point(index, { clientX: place.left, clientY: place.bottom - 12 });
    if (isAsked) this.onChosen(this, index);
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

  // Shows the tip of a token at a place of the window; -1 hides it.
  point(index, place) {
    const tip = $("tip");
    tip.hidden = index < 0;
    this.onPointed(index < 0 ? null : spanOf(this.result, index));
    if (index < 0) return;
    const [start, end] = spanOf(this.result, index),
      token = this.token(index);
    tip.replaceChildren(
      `id ${this.result.ids[index]} `,
      shown(token),
      element("br"),
      element("code", {}, clipped(hexOf(token), HEX_OF_TIP)),
      element("br"),
      `token ${number(index + 1)} of ${number(this.result.ids.length)}, ${range(start, end)}, ${typeOf(token)}`,
    );
    const room = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(place.clientX + 12, innerWidth - room.width - 4))}px`;
    tip.style.top = `${place.clientY + 20 + room.height > innerHeight ? place.clientY - room.height - 10 : place.clientY + 20}px`;
  }
}

function inContext(count, context) {
  if (count > context) return `more than its context of ${number(context)}`;
  const percent = ((count / context) * 100).toLocaleString("en", { maximumSignificantDigits: 2 });
  return `${percent}% of its context of ${number(context)}`;
}

export const spanOf = (result, index) => [result.spans[2 * index], result.spans[2 * index + 1]];

// What stands in place of the tokens of a model that refuses.
export const refusalOf = (model, message) =>
  element(
    "div",
    { className: "view refused" },
    element("header", {}, element("h2", {}, model)),
    element("p", { className: "bad" }, message),
  );

// Leaves a view that stands right where it is: one that is taken out loses the place to which it was scrolled.
export function placeViews(wanted) {
  const { children } = $("views");
  wanted.forEach((view, index) => {
    if (children[index] !== view) $("views").insertBefore(view, children[index] ?? null);
  });
  while (children.length > wanted.length) $("views").lastElementChild.remove();
}
