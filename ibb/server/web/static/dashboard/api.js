// What the page asks the server, and what the server tells by itself.

const RETRY_MS = 2000;

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

/** Return the JSON of /api/NAME; throws an Error with the server's words. */
export async function ask(name, query = {}, signal = undefined) {
  const reply = await fetch(`/api/${name}?${new URLSearchParams(query)}`, { signal });
  if (reply.status === 401) {
    logIn();
    throw new Error("Log in first.");
  }
  const found = await reply.json();
  if (!reply.ok) throw new Error(found.error);
  return found;
}

/**
 * Have *show* called with each overview, and *state* with whether they come; reconnects for ever.
 *
 * A browser reconnects by itself where a connection breaks, not where the server says no: it may
 * have been started again, and then the login is over.
 */
export function watch(show, state) {
  let source = null;
  const open = () => {
    source = new EventSource("/api/live");
    source.addEventListener("overview", (event) => {
      state(true);
      show(JSON.parse(event.data));
    });
    source.onerror = () => {
      state(false);
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(() => ask("samples", { seconds: 0 }).catch(() => null).then(open), RETRY_MS);
    };
  };
  addEventListener("pagehide", () => source.close());
  open();
}
