// A look into one event group.

import { ask } from "./api.js";
import { facts, fill, h } from "./dom.js";
import { bytes, moment, number, text } from "./format.js";
import { table } from "./table.js";

export function group(state, [file, offset]) {
  const words = h("p", { role: "status", class: "note" }, "Reading ...");
  const numbers = h("div");
  const events = table([
    { name: "Number", kind: "number", show: (row) => row.Number },
    { name: "Event_type", kind: "code", show: (row) => row.Event_type },
    { name: "Server_id", kind: "number", show: (row) => row.Server_id },
    { name: "Offset", kind: "number", show: (row) => number(row.Offset) },
    { name: "Bytes", kind: "number", show: (row) => number(row.Bytes) },
    { name: "Info", kind: "code wide", show: (row) => [text(row.Info), row.Rows.length
      ? h("ol", { class: "rows" }, row.Rows.map((told) => h("li", {}, told))) : null].filter(Boolean) },
  ], { caption: "Events" });
  const links = h("p", { class: "pager" });
  const element = h("div", {}, words, numbers, events.element, links);

  async function load(skip) {
    try {
      const found = await ask("group", { file, offset, skip });
      fill(numbers, facts([
        ["Gtid", found.Gtid],
        ["Time", moment(found.Time)],
        ["File", h("a", { href: `#/history/${found.File}/${found.Position}` }, found.File)],
        ["Position", number(found.Position)],
        ["Bytes", `${bytes(found.bytes)}${found.left_out ? " and more" : ""}`],
        ["Events", `${number(found.events)}${found.left_out ? " and more" : ""}`],
      ]));
      events.show(found.rows);
      words.textContent = found.left_out;
      const behind = skip + found.rows.length;
      const go = (label, to) => h("button", { type: "button", onclick: () => load(to) }, label);
      fill(links,
        skip ? go("From the first event", 0) : null,
        behind < found.events ? go(`Further events, from ${number(behind)}`, behind) : null);
    } catch (error) {
      words.textContent = error.message;
    }
  }
  load(0);
  return { element };
}
