// Who reads: a page of them at a time, sorted and searched by the server.

import { ask } from "./api.js";
import { debounced, h, say } from "./dom.js";
import { bytes, number, rate, text } from "./format.js";
import { pager, table } from "./table.js";

const COLUMNS = [
  { name: "Id", kind: "number", show: (row) => row.Id },
  { name: "User", kind: "text name", show: (row) => row.User },
  { name: "Host", kind: "text name", show: (row) => row.Host },
  { name: "Server_id", kind: "number", show: (row) => row.Server_id },
  { name: "Seconds_behind", kind: "number", show: (row) => number(row.Seconds_behind) },
  { name: "Groups_behind", kind: "number", show: (row) => number(row.Groups_behind) },
  { name: "Bytes_behind", kind: "number", show: (row) => bytes(row.Bytes_behind) },
  { name: "Rate", kind: "number", show: (row) => rate(row.Rate) },
  { name: "Why", kind: "text wide", fixed: true, show: (row) => text(row.Why) },
  { name: "Gtid_pos", kind: "code", show: (row) => text(row.Gtid_pos) },
  { name: "File", kind: "code name", show: (row) => row.File },
  { name: "Position", kind: "number", show: (row) => row.Position },
  { name: "Holds_from", kind: "code name", show: (row) => row.Holds_from },
  { name: "State", kind: "text wide", show: (row) => row.State },
  { name: "Ack_age", kind: "number", show: (row) => number(row.Ack_age) },
];
const SIZES = [25, 50, 100, 200];

/** Return a table of readers, with columns up to *last* or all; see `table` for the options. */
export function readerTable(options, last = COLUMNS.at(-1).name) {
  const until = COLUMNS.findIndex((column) => column.name === last);
  return table(COLUMNS.slice(0, until + 1), {
    empty: options.sort ? "No reader has that." : "Every reader keeps up.",
    rowClass: (row) => (row.Why && row.Why !== "keeps up" ? "late" : null),
    ...options,
  });
}

export function readers() {
  const query = { order: "Bytes_behind", descending: 1, text: "", offset: 0, limit: 50 };
  const asked = new AbortController();
  let busy = false;
  let again = false;
  const shown = readerTable({
    caption: "Readers",
    order: { name: query.order, descending: true },
    sort: (order) => change({ order: order.name, descending: order.descending ? 1 : 0 }),
  });
  const pages = pager((offset) => change({ offset }, true));
  const words = h("p", { role: "status", class: "note" });
  const input = h("input", { id: "filter", type: "search", maxlength: 100, autocomplete: "off" });
  input.addEventListener("input", debounced(() => change({ text: input.value })));
  const size = h("select", { id: "size", onchange: () => change({ limit: Number(size.value) }) },
    SIZES.map((value) => h("option", { value, selected: value === query.limit }, value)));
  const element = h("div", {},
    h("div", { class: "controls" },
      h("span", { class: "field" }, h("label", { for: "filter" }, "Only with"), input),
      h("span", { class: "field" }, h("label", { for: "size" }, "Rows"), size), pages.element),
    words, shown.element);

  function change(part, keepOffset = false) {
    Object.assign(query, keepOffset ? {} : { offset: 0 }, part);
    load();
  }

  async function load() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const page = await ask("readers", query, { signal: asked.signal });
      shown.show(page.rows);
      pages.show(query.offset, page.rows.length, page.found, query.limit);
      const all = `${page.total} ${page.total === 1 ? "reader" : "readers"}`;
      say(words, page.found === page.total ? all : `${page.found} of ${all}`);
    } catch (error) {
      if (!asked.signal.aborted) words.textContent = error.message;
    }
    busy = false;
    if (again && !asked.signal.aborted) {
      again = false;
      load();
    }
  }
  load();
  return { element, tick: load, close: () => asked.abort() };
}
