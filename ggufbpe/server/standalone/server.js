// Takes the place of the module of this name on a page without a server: a worker (answers.js) answers in its place.

export const PLACE = "browser";
export const useKey = () => {};
export const whenRefused = () => {};

const worker = new Worker(new URL("./answers.js", import.meta.url), { type: "module" });
const waiting = new Map(); // number of a request -> the functions that settle its promise
let requests = 0;
let previous = Promise.resolve(); // the worker has one question at a time
let broken = null; // why the worker answers nothing any more

worker.onmessage = ({ data: { number, answer, failure } }) => {
  const { resolve, reject } = waiting.get(number);
  waiting.delete(number);
  if (failure === undefined) resolve(answer);
  else reject(new Error(failure));
};
worker.onerror = (event) => {
  broken = new Error(event.message || "The worker of this page cannot be loaded.");
  for (const { reject } of waiting.values()) reject(broken);
  waiting.clear();
};

export function ask(path, body, signal) {
  const answer = previous.then(() => {
    signal?.throwIfAborted(); // so what nobody waits for any more is never sent
    return answerOf(path, body);
  });
  previous = answer.catch(() => {});
  return answer.then((found) => {
    signal?.throwIfAborted();
    return found;
  });
}

function answerOf(path, body) {
  return new Promise((resolve, reject) => {
    if (broken) throw broken;
    worker.postMessage({ number: ++requests, path, body });
    waiting.set(requests, { resolve, reject });
  });
}

// Opens a File or an address, and returns the model's name on this page. Questions do not wait for it.
export async function openModel(model) {
  if (typeof model !== "string") return answerOf("open", { model });
  const { href, protocol, username, password } = new URL(model, location.href);
  if (!/^https?:$/.test(protocol)) {
    throw new Error('Only http and https addresses can be opened here. For a file, use "Open a model".');
  }
  if (username || password) throw new Error("An address with a user name or a password cannot be opened here.");
  return answerOf("open", { model: href });
}

// Questions that were asked before have their answers first.
export const closeModel = (model) => ask("close", { model });
