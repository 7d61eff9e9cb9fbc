// At a glance: alerts, the picture of who sends to whom, plots, and who is furthest behind.

import { refusal } from "./api.js";
import { facts, fill, h, note, section } from "./dom.js";
import { bytes, duration, milliseconds, number, rate, text } from "./format.js";
import { picture } from "./picture.js";
import { plot } from "./plot.js";
import { readerTable } from "./readers.js";

const SPANS = [["5 minutes", 300], ["15 minutes", 900], ["1 hour", 3600]];

/** Return SHOW BINLOG STORAGE as facts. */
function storage(found) {
  if (!found) return [];
  return [
    ...["Redo_used", "Redo_limit", "Page_fifo", "Page_fifo_limit", "Unsynced"].map((name) => [name, bytes(found[name])]),
    ["Syncs", number(found.Syncs)],
    ["Sync_time", duration(found.Sync_time / 1e6)],
    ["Sync_time / Syncs, lately", milliseconds(found.sync_seconds)],
  ];
}

export function overview(state) {
  const alerts = h("div", { role: "status" });
  const drawn = picture();
  const numbers = h("div");
  const plots = [
    plot("Throughput", [
      { name: "bytes_written", title: "written" },
      { name: "bytes_sent", title: "sent" }], rate),
    plot("Groups", [{ name: "groups_written", title: "written" }], (value) => `${number(value)}/s`),
    plot("Bytes behind", [{ name: "bytes_behind", title: "furthest reader" }], bytes),
    plot("Seconds behind", [
      { name: "seconds_behind", title: "furthest reader" },
      { name: "seconds_behind_upstream", title: "relay" }], duration),
  ];
  const worst = readerTable({ caption: "Readers that are furthest behind" }, "Gtid_pos");
  let seconds = 900;
  const choice = h("select", { id: "span", onchange: () => { seconds = Number(choice.value); draw(); } },
    SPANS.map(([label, value]) => h("option", { value, selected: value === seconds }, label)));

  const element = h("div", {},
    section("Alerts", alerts),
    section("Who sends to whom", drawn.element),
    section("Numbers", numbers),
    section("Plots", h("p", {}, h("label", { for: "span" }, "The last "), choice), h("div", { class: "plots" }, plots.map((each) => each.element))),
    section("Behind", note(refusal("readers"))
      ?? [worst.element, h("p", {}, h("a", { href: "#/readers" }, "All readers"))]));

  let told = null;
  function warn(found) {
    const key = JSON.stringify(found);
    if (key === told) return;  // what a screen reader has said once
    told = key;
    fill(alerts, found.length
      ? h("ul", { class: "alerts" }, found.map((alert) => h("li", { class: alert.level },
          h("strong", {}, `${alert.level} `), `${alert.about}: ${alert.text}`)))
      : h("p", { class: "fine" }, "Nothing to look at."));
  }

  function draw() {
    const newest = state.samples.at(-1);
    if (!newest) return;
    const wanted = state.samples.filter((sample) => sample.time >= newest.time - seconds);
    plots.forEach((each) => each.show(wanted));
  }

  function tick(found) {
    warn(found.alerts);
    drawn.show(found);
    fill(numbers, facts([
      ["File", found.binlog.File],
      ["Position", number(found.binlog.Position)],
      ["gtid_binlog_pos", text(found.binlog.gtid_binlog_pos)],
      ["Files", `${number(found.binlog.files)}, ${bytes(found.binlog.bytes)}`],
      ...storage(found.storage),
      ["Readers", `${number(found.sample.readers)}, ${number(found.sample.readers_behind)} behind`],
      ["Threads_connected", number(found.server.Threads_connected)],
      ["Uptime", duration(found.server.Uptime)],
      ["server_id", found.server.server_id],
    ]));
    worst.show(found.readers.rows.filter((row) => row.Why !== "" && row.Why !== "keeps up"));
    draw();
  }
  return { element, tick };
}
