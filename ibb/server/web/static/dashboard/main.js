// The page: which view is shown, what is live in it, and its colours.

import { ask, learn, refusal, watch } from "./api.js";
import { fill, h, note } from "./dom.js";
import { group } from "./group.js";
import { history } from "./history.js";
import { overview } from "./overview.js";
import { readers } from "./readers.js";
import { search } from "./search.js";
import { settings } from "./settings.js";
import { upstream } from "./upstream.js";

// By their names those of the server, where there is one of that name: it may be refused.
const VIEWS = { overview, readers, history, group, search, upstream, settings };
const TITLES = { group: "Group" };
const KEPT_SECONDS = 3600;

const main = document.getElementById("view");
const live = document.getElementById("live");

// Shared by the views: the newest overview and the samples of the last hour.
const state = { overview: null, samples: [] };
let shown = { tick: () => null, close: () => null };
let title = "";

/** Name the window, with how many alerts there are: it may be one tab of many. */
function nameWindow() {
  const alerts = state.overview?.alerts.length ?? 0;
  document.title = `${alerts ? `(${alerts}) ` : ""}${title} - ibb`;
}

async function show() {
  const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const make = VIEWS[view] ?? VIEWS.overview;
  title = TITLES[view] ?? document.querySelector(`nav a[href="#/${view || "overview"}"]`)?.textContent ?? "Overview";
  shown.close?.();
  nameWindow();
  for (const link of document.querySelectorAll("nav a")) {
    const chosen = link.hash === `#/${view || "overview"}` || (view === "group" && link.hash === "#/history");
    if (chosen) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const words = refusal(view);
  shown = words ? { element: note(words) } : make(state, rest);
  fill(main, h("h1", {}, title), shown.element);
  if (state.overview) shown.tick?.(state.overview);
}

function take(found) {
  state.overview = found;
  const newest = state.samples.at(-1);
  if (!newest || found.sample.time > newest.time) state.samples.push(found.sample);
  while (state.samples.length && state.samples[0].time < found.sample.time - KEPT_SECONDS) state.samples.shift();
  document.getElementById("where").textContent = `${found.server.hostname}:${found.server.port}`;
  nameWindow();
  if (!document.hidden) shown.tick?.(found);
}

function connected(yes) {
  const words = yes ? "live" : "not connected, trying again";
  if (live.textContent !== words) live.textContent = words;
  live.className = yes ? "on" : "off";
}

function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

document.getElementById("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("ibb-theme", theme);
  chooseTheme(theme);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();  // the hash says which view is shown
  main.focus();
});
chooseTheme(document.documentElement.dataset.theme);

const before = sessionStorage.getItem("ibb-view");
sessionStorage.removeItem("ibb-view");
if (before && !location.hash) location.hash = before;

addEventListener("hashchange", () => {
  show();
  main.focus();
});
connected(false);
live.textContent = "connecting";
await learn().catch(() => null);
show();
const kept = await ask("samples", { seconds: KEPT_SECONDS }).catch(() => null);
if (kept) {
  state.samples = kept.rows.map((row) => Object.fromEntries(kept.columns.map((name, index) => [name, row[index]])));
}
watch(take, connected);
