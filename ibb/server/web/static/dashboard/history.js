// The files, what keeps them from a purge, and the groups that begin in one.

import { ask, refusal } from "./api.js";
import { facts, fill, h, note, say, section } from "./dom.js";
import { bytes, duration, moment, number, text } from "./format.js";
import { pager, table } from "./table.js";

const LIMIT = 50;
const LOOKS = 5;  // of the server at itself, between two of ours
const code = (name) => ({ name, kind: "code name", show: (row) => text(row[name]) });
const plain = (name) => ({ name, kind: "text wide", show: (row) => text(row[name]) });

const fileLink = (name) => h("a", { href: `#/history/${encodeURIComponent(name)}/0` }, name);

/** Return the link to a group. */
export function groupLink(row) {
  return h("a", { href: `#/group/${row.File}/${row.Position}` }, row.Gtid);
}

export function history(state, [file, offset]) {
  return file ? groupsOf(file, Number(offset) || 0) : files();
}

function files() {
  const words = h("p", { role: "status", class: "note" });
  const numbers = h("div");
  const fileRows = table([
    { name: "Log_name", kind: "code name", show: (row) => fileLink(row.Log_name) },
    { name: "File_size", kind: "number", show: (row) => bytes(row.File_size) },
    { name: "First_gtid", kind: "code name", show: (row) => text(row.First_gtid) },
    { name: "First_time", kind: "text name", show: (row) => moment(row.First_time) },
    { ...plain("Needed_because"), show: (row) => (refusal("readers") ? "not shown" : text(row.Needed_because)) },
  ], { caption: "Files, the newest first" });
  const needs = table([code("Holds_from"), plain("Reason"), { name: "Lasts", kind: "text", show: (row) => row.Lasts }],
    { caption: "Who needs files, from which on", empty: "Nobody." });
  const leases = table([
    plain("Name"), { name: "Gtid_pos", kind: "code", show: (row) => text(row.Gtid_pos) }, code("Holds_from"),
    { name: "Age", kind: "number", show: (row) => duration(row.Age) },
    { name: "Expires_after", kind: "number", show: (row) => duration(row.Expires_after) },
    { name: "Lapsed", kind: "text", show: (row) => row.Lapsed },
  ], { caption: "Leases", empty: "No leases." });
  let at = 0;
  const pages = pager((offset) => { at = offset; load(); });
  const element = h("div", {}, words, numbers,
    section("Files", pages.element, fileRows.element),
    section("What holds a purge", note(refusal("readers")) ?? needs.element, leases.element));

  async function load() {
    try {
      const [page, held] = await Promise.all([ask("files", { offset: at, limit: LIMIT }), ask("leases")]);
      fileRows.show(page.rows);
      needs.show(page.needs);
      leases.show(held.rows);
      pages.show(at, page.rows.length, page.total, LIMIT);
      fill(numbers, facts([
        ["Files", number(page.total)],
        ["Bytes", bytes(page.bytes)],
        ...Object.entries(page.settings),
      ]));
      const more = page.more_needs ? `${page.more_needs} more need newer files. ` : "";
      say(words, `${more}${page.last_purge}`);
    } catch (error) {
      say(words, error.message);
    }
  }
  load();
  let looks = 0;
  function tick() {
    looks += 1;
    if (looks % LOOKS === 0) load();
  }
  return { element, tick };
}

function groupsOf(file, offset) {
  const words = h("p", { role: "status", class: "note" });
  const rows = table([
    { name: "Gtid", kind: "code", show: groupLink },
    { name: "Time", kind: "text", show: (row) => moment(row.Time) },
    { name: "Position", kind: "number", show: (row) => row.Position },
  ], { caption: `Groups in ${file}`, empty: "No group begins here." });
  const links = h("p", { class: "pager" });
  const element = h("div", {}, h("p", {}, h("a", { href: "#/history" }, "All files")), words, rows.element, links);
  ask("groups", { file, offset }).then((found) => {
    rows.show(found.rows);
    const to = (place) => `#/history/${encodeURIComponent(file)}/${place}`;
    fill(links,
      offset ? h("a", { href: to(0) }, "From the beginning") : null,
      found.following === null ? null : h("a", { href: to(found.following) }, "Further groups"));
  }).catch((error) => { words.textContent = error.message; });
  return { element };
}
