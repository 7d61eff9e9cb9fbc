// Tables: headings that sort, rows that are replaced as a whole, and a frame that scrolls.

import { fill, h, say } from "./dom.js";

/**
 * Return a table.
 *
 * columns: [{name, title?, kind: "text"|"number"|"code", show(row)}]; name is that of SQL.
 * options: caption; order {name, descending} and sort(order) where headings are to sort;
 *   empty: what stands in place of no rows; rowClass(row).
 * The result has .element and .show(rows).
 */
export function table(columns, options) {
  const { caption, sort } = options;
  let order = options.order ?? null;
  const heads = columns.map((column) => {
    const label = column.title ?? column.name;
    if (!sort || column.fixed) return h("th", { scope: "col", class: column.kind }, label);
    const press = () => {
      const descending = order.name === column.name ? !order.descending : column.kind === "number";
      order = { name: column.name, descending };
      mark();
      sort(order);
    };
    const button = h("button", { type: "button", class: "sort", onclick: press }, label);
    return h("th", { scope: "col", class: column.kind }, button);
  });
  const mark = () => columns.forEach((column, index) => {
    if (!sort || column.fixed) return;
    const chosen = order.name === column.name;
    const words = order.descending ? "descending" : "ascending";
    heads[index].setAttribute("aria-sort", chosen ? words : "none");
  });
  if (sort) mark();
  const body = h("tbody");
  const element = h("div", { class: "frame", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, heads)), body));

  let told = null;
  function show(rows) {
    const key = JSON.stringify(rows);
    if (key === told) return;  // so that a link keeps the keyboard, and a selection stays
    told = key;
    if (!rows.length) {
      const text = options.empty ?? "none";
      fill(body, h("tr", {}, h("td", { colspan: columns.length, class: "empty" }, text)));
      return;
    }
    fill(body, rows.map((row) => h("tr", { class: options.rowClass?.(row) },
      columns.map((column) => h("td", { class: column.kind }, column.show(row))))));
  }
  return { element, show };
}

/** Return buttons that go through pages; go(offset) is called. */
export function pager(go) {
  const back = h("button", { type: "button" }, "Back");
  const on = h("button", { type: "button" }, "On");
  const where = h("span", { role: "status" });
  let offset = 0;
  let limit = 1;
  back.addEventListener("click", () => go(Math.max(0, offset - limit)));
  on.addEventListener("click", () => go(offset + limit));
  const element = h("div", { class: "pager" }, back, where, on);
  function show(at, count, total, size) {
    offset = at;
    limit = size;
    back.disabled = at === 0;
    on.disabled = at + count >= total;
    say(where, total ? `${at + 1} to ${at + count} of ${total}` : "none");
  }
  return { element, show };
}
