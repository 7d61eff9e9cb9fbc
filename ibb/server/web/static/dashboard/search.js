// Where is a GTID?

import { ask } from "./api.js";
import { fill, h } from "./dom.js";
import { groupLink } from "./history.js";

export function search(state, [gtid]) {
  const input = h("input", {
    id: "gtid", required: true, maxlength: 60, autocomplete: "off", spellcheck: "false",
    pattern: " *[0-9]+-[0-9]+-[0-9]+ *", placeholder: "0-1-100", value: gtid ?? "",
    "aria-describedby": "gtid-help",
  });
  const answer = h("div", { role: "status", class: "answer" });
  const form = h("form", { class: "controls", onsubmit: (event) => {
    event.preventDefault();
    const wanted = input.value.trim();
    const hash = `#/search/${encodeURIComponent(wanted)}`;
    if (location.hash === hash) find(wanted);
    else location.hash = hash;
  } }, h("label", { for: "gtid" }, "GTID"), input, h("button", {}, "Search"));
  const element = h("div", {}, form,
    h("p", { id: "gtid-help", class: "note" }, "Domain, server and sequence number, as in 0-1-100."), answer);

  async function find(wanted) {
    fill(answer, h("p", {}, "Searching ..."));
    try {
      const found = await ask("find", { gtid: wanted });
      fill(answer, h("p", {}, found.File ? groupLink(found) : found.Gtid, ` is ${found.answer}.`));
    } catch (error) {
      fill(answer, h("p", { class: "error" }, error.message));
    }
  }
  if (gtid) find(gtid);
  return { element };
}
