// Takes the place of the module of this name on a page without a server: a worker (answers.js) answers in its place.

export const PLACE = "browser";
export const useKey = () => {};
export const whenRefused = () => {};

const worker = new Worker(new URL("./answers.js", import.meta.url), { type: "module" });
let previous = Promise.resolve(); // the worker has one request at a time

export function ask(path, body, signal) {
  const answer = previous.then(() => {
    signal?.throwIfAborted(); // so what nobody waits for any more is never sent
    return answerOf({ path, body });
  });
  previous = answer.catch(() => {});
  return answer.then((found) => {
    signal?.throwIfAborted();
    return found;
  });
}

function answerOf(request) {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { answer, failure } }) => (failure === undefined ? resolve(answer) : reject(new Error(failure)));
    worker.onerror = (event) => reject(new Error(event.message || "The worker of this page cannot be loaded."));
    worker.postMessage(request);
  });
}

// Opens a File or an address, and returns the model's name on this page.
export async function openModel(model) {
  return ask("open", { model: typeof model === "string" ? new URL(model, location.href).href : model });
}
