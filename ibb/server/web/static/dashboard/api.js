// What the page asks the server, and what the server tells by itself.

import { stream } from "./stream.js";

const ASK_MS = 30000;
const CHECK_MS = 8000;  // shorter than a stream's silence, so that what hangs does not pile up
const FIRST_MS = 5000;  // for the worker to say anything
const SILENT_MS = 15000;  // longer than a stream needs to see that its server is silent

/** Go to the login page, and come back to this view behind it. */
function logIn() {
  sessionStorage.setItem("ibb-view", location.hash);
  location.assign("/login");
}

// Why the server refuses views, by their names: those are not asked, and what they tell is not shown.
let refused = {};

/** Find out what this account is not shown, before anything is. */
export async function learn() {
  refused = await ask("refused");
}

/** Return what stands in place of view NAME where this account lacks its privilege, else "". */
export function refusal(name) {
  return refused[name] ? `Not shown: ${refused[name]}` : "";
}

/**
 * Return the JSON of /api/NAME; throws an Error with the server's words.
 *
 * It is given up after so many milliseconds, or by *signal*: a browser has six connections to a
 * server, and none would be left if each waited for one that says nothing.
 */
export async function ask(name, query = {}, { signal = undefined, milliseconds = ASK_MS } = {}) {
  const ends = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    ends.abort();
  }, milliseconds);
  signal?.addEventListener("abort", () => ends.abort(), { signal: ends.signal });
  try {
    signal?.throwIfAborted();
    const reply = await fetch(`/api/${name}?${new URLSearchParams(query)}`, { signal: ends.signal });
    if (reply.status === 401) {
      logIn();
      throw new Error("Log in first.");
    }
    const found = await reply.json();
    if (!reply.ok) throw new Error(found.error);
    return found;
  } catch (error) {
    throw late ? new Error(`The server has not answered for ${milliseconds / 1000} s.`) : error;
  } finally {
    clearTimeout(timer);
    ends.abort();  // a view asks again and again: *signal* is not to keep a listener for each
  }
}

/**
 * Have *take* called with what the stream of all tabs tells; returns what ends it.
 *
 * While the worker cannot be had, or says nothing, this tab has a stream of its own.
 */
function join(take) {
  if (!window.SharedWorker) return stream(take);
  const worker = new SharedWorker(new URL("shared_stream.js", import.meta.url), { type: "module" });
  let end = null;
  let timer = 0;
  const alone = () => {
    end ??= stream(take);
  };
  const hear = (milliseconds) => {
    clearTimeout(timer);
    timer = setTimeout(alone, milliseconds);
  };
  const together = () => {
    clearTimeout(timer);
    end?.();
    end = null;
  };
  worker.onerror = alone;  // browsers do not always tell
  worker.port.onmessage = ({ data }) => {
    together();
    hear(SILENT_MS);
    take(data);
  };
  hear(FIRST_MS);
  return () => {
    worker.port.onmessage = worker.onerror = null;
    together();
    worker.port.postMessage("leave");
  };
}

/** Have *show* called with each overview, and *state* with whether they come. */
export function watch(show, state) {
  const leave = join((text) => {
    state(text !== null);
    if (text !== null) show(JSON.parse(text));
    else ask("samples", { seconds: 0 }, { milliseconds: CHECK_MS }).catch(() => null);  // is the login over?
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();  // it has left
  });
}
