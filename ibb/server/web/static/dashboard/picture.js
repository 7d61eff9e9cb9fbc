// Upstream, store and readers, with what goes between them: boxes in a row, below each other on a phone.

import { refusal } from "./api.js";
import { fill, h } from "./dom.js";
import { bytes, duration, rate, text } from "./format.js";

const READERS_DRAWN = 6;

/** Return an arrow with its rate. */
function arrow(size, words) {
  return h("div", { class: size > 0 ? "arrow flows" : "arrow" },
    h("span", {}, words),
    h("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" },
      h("path", { d: "M0 6H92" }), h("path", { class: "tip", d: "M92 2L100 6L92 10Z" })));
}

function box(kind, title, lines) {
  return h("div", { class: `box ${kind}` }, h("strong", {}, title), lines.map((line) => h("span", {}, line)));
}

function upstreamBox(found) {
  const row = found.upstream;
  if (refusal("upstream")) return box("none", "Upstream", [refusal("upstream")]);
  if (!row) return box("none", "No upstream", ["a program publishes, or files are only served"]);
  const kind = row.Slave_IO_Running === "Yes" ? "good" : row.Slave_SQL_Running === "Yes" ? "late" : "bad";
  const words = kind === "good"
    ? `Seconds_Behind_Master: ${text(row.Seconds_Behind_Master)}`
    : text(row.Slave_IO_State || row.Last_IO_Error || "stopped");
  return box(kind, `${row.Master_Host}:${row.Master_Port}`, ["upstream", words]);
}

function readerBox(row) {
  const behind = row.Bytes_behind;
  const kind = !behind || row.Why === "keeps up" ? "good" : /does not read|hardly/.test(row.Why) ? "bad" : "late";
  const lag = row.Seconds_behind === null ? bytes(behind) : `${bytes(behind)}, ${duration(row.Seconds_behind)}`;
  return h("li", {},
    arrow(row.Rate, rate(row.Rate)),
    box(kind, `server ${row.Server_id}`, [row.Host, kind === "good" ? row.Why || "has everything" : `${lag} behind`]));
}

/** Return the picture, with .element and .show(overview). */
export function picture() {
  const element = h("div", { class: "picture" });
  function show(found) {
    const { binlog, readers, sample } = found;
    const rest = readers.total - Math.min(readers.rows.length, READERS_DRAWN);
    const store = box("store", text(binlog.gtid_binlog_pos), [
      binlog.File, `${bytes(binlog.bytes)} in ${binlog.files} files`]);
    fill(element,
      upstreamBox(found),
      arrow(sample.bytes_written, rate(sample.bytes_written)),
      store,
      h("ul", { class: "readers", "aria-label": "Readers" },
        readers.rows.slice(0, READERS_DRAWN).map(readerBox),
        readers.total ? null : h("li", {}, arrow(0, "0 B/s"), box("none", "No readers", ["nobody reads"])),
        rest > 0 ? h("li", {}, arrow(sample.bytes_sent, `${rate(sample.bytes_sent)} in all`),
          refusal("readers") ? box("none", `${rest} ${rest === 1 ? "reader" : "readers"}`, [refusal("readers")])
            : box("none", `${rest} more`, ["less far behind"])) : null));
  }
  return { element, show };
}
