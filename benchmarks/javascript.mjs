// The tokenizers for JavaScript on the same texts, in Node or in a browser: javascript.py runs this.

const now = () => {
  if (!globalThis.process?.cpuUsage) return performance.now() / 1000;
  const { user, system } = process.cpuUsage(); // a busy machine does not count
  return (user + system) / 1e6;
};

// Each opens a model and returns the function from a text to its ids, without BOS and with control tokens as text.
const OPENERS = {
  ggufbpe: async ({ model, modules }) => {
    const { Tokenizer } = await import(modules.ggufbpe);
    const tokenizer = await Tokenizer.fromGGUF(model);
    return (text) => tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
  },
  "transformers.js": async ({ tokenizerJson, modules }) => {
    const { Tokenizer } = await import(modules["transformers.js"]);
    const tokenizer = new Tokenizer(JSON.parse(tokenizerJson), {});
    return (text) => tokenizer.encode(text, { add_special_tokens: false }).ids;
  },
  "gpt-tokenizer": async ({ modules }) => {
    const { encode } = await import(modules["gpt-tokenizer"]);
    return (text) => encode(text, { disallowedSpecial: new Set() });
  },
  wllama: async ({ weights, modules }) => {
    const { Wllama } = await import(modules.wllama);
    const wllama = new Wllama({ "single-thread/wllama.wasm": modules.wllamaWasm }, { suppressNativeLog: true });
    await wllama.loadModel([await (await fetch(weights)).blob()], { n_ctx: 512, n_threads: 1 });
    return async (text) => [...(await wllama.tokenize(text, false))];
  },
};

// Seconds to open, to encode for the first time, and later; with the ids of the first text for the caller to check.
export async function measure(name, work) {
  const begun = now();
  const encode = await OPENERS[name](work);
  const opened = now() - begun;
  const texts = {};
  for (const [text, content] of Object.entries(work.texts)) {
    const passes = [];
    let ids;
    for (let pass = 0; pass < work.rounds + 1; ++pass) {
      const start = now();
      ids = await encode(content);
      passes.push(now() - start);
    }
    texts[text] = { first: passes[0], later: Math.min(...passes.slice(1)), ids: await digest(ids) };
  }
  return { name, opened, texts };
}

async function digest(ids) {
  const hash = await crypto.subtle.digest("SHA-256", Int32Array.from(ids));
  return Array.from(new Uint8Array(hash).subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

if (globalThis.process?.argv) {
  const { readFile } = await import("node:fs/promises");
  const { name, work } = JSON.parse(await readFile(process.argv[2], "utf8"));
  console.log(JSON.stringify(await measure(name, work)));
}
