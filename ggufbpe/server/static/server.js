// The only module that talks to the server: it sends a request, and returns the answer or throws its message.

export const PLACE = "server"; // or "browser": ../standalone/server.js
export const openModel = null; // a server has its models
export const closeModel = null;

let key = ""; // the API key, a character for each byte of its UTF-8; it is stored nowhere

export const useKey = (given) => (key = String.fromCharCode(...new TextEncoder().encode(given)));

// Called with whether the server refused the key.
export let onRefusal = () => {};
export const whenRefused = (call) => (onRefusal = call);

export async function ask(path, body, signal) {
  const response = await fetch(path, {
    method: body ? "POST" : "GET",
    headers: { ...(body && { "Content-Type": "application/json" }), ...(key && { "X-Api-Key": key }) },
    body: body && JSON.stringify(body),
    signal,
  }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not respond.");
  });
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  onRefusal(response.status === 401);
  if (!response.ok) throw new Error(answer?.error?.message ?? `The server responded with status ${response.status}.`);
  if (!answer) throw new Error("The connection to the server broke off before its answer was complete.");
  return answer;
}
