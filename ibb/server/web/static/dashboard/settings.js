// Settings, system variables and status, to read.

import { ask, refusal } from "./api.js";
import { debounced, h, note, section } from "./dom.js";
import { text } from "./format.js";
import { table } from "./table.js";

const NAMED = [
  { name: "Variable_name", kind: "code", show: (row) => row.Variable_name },
  { name: "Value", kind: "code", show: (row) => text(row.Value) },
];

export function settings() {
  const words = h("p", { role: "status", class: "note" });
  const input = h("input", { id: "filter", type: "search", maxlength: 100, autocomplete: "off" });
  const own = table([
    { name: "Setting", kind: "code", show: (row) => row.name },
    { name: "Value", kind: "code", show: (row) => text(row.value) },
    { name: "Default", kind: "code", show: (row) => text(row.default) },
    { name: "Unit", kind: "text", show: (row) => text(row.unit) },
    { name: "Meaning", kind: "text", show: (row) => row.help },
  ], { caption: "Settings of ibb serve", empty: "No setting has that." });
  const variables = table(NAMED, { caption: "SHOW GLOBAL VARIABLES", empty: "No variable has that." });
  const status = table(NAMED, { caption: "SHOW GLOBAL STATUS", empty: "No status has that." });
  const element = h("div", {},
    h("div", { class: "controls" }, h("label", { for: "filter" }, "Only with"), input), words,
    section("Settings", note(refusal("upstream") && `Of the upstream: ${refusal("upstream")}`), own.element), section("Variables", variables.element), section("Status", status.element));
  let found = null;

  function show() {
    if (!found) return;
    const wanted = input.value.toLowerCase();
    const has = (row) => Object.values(row).some((value) => String(value).toLowerCase().includes(wanted));
    own.show(found.settings.filter(has));
    variables.show(found.variables.filter(has));
    status.show(found.status.filter(has));
  }
  input.addEventListener("input", debounced(show));
  ask("settings").then((answer) => { found = answer; show(); }).catch((error) => { words.textContent = error.message; });
  return { element };
}
