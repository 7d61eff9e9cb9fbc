// The relay: SHOW REPLICA STATUS, the rows that say something first.

import { ask } from "./api.js";
import { facts, fill, h, section } from "./dom.js";
import { text } from "./format.js";

const FIRST = ["Slave_IO_State", "Master_Host", "Master_Port", "Master_User", "Slave_IO_Running",
  "Slave_SQL_Running", "Seconds_Behind_Master", "Last_IO_Errno", "Last_IO_Error", "Using_Gtid", "Gtid_IO_Pos",
  "Master_Server_Id", "Master_SSL_Allowed", "Master_SSL_Cipher", "Connect_Retry"];

export function upstream() {
  const words = h("p", { role: "status", class: "note" });
  const first = h("div");
  const rest = h("div");
  const more = h("details", {}, h("summary", {}, "All of SHOW REPLICA STATUS"), rest);
  const element = h("div", {}, words, section("Relay", first, more));

  async function load() {
    try {
      const { rows } = await ask("upstream");
      more.hidden = !rows.length;
      words.textContent = rows.length ? "" : "There is no upstream: CHANGE MASTER or --upstream names one.";
      if (!rows.length) return;
      fill(first, facts(FIRST.map((name) => [name, text(rows[0][name])])));
      fill(rest, facts(Object.entries(rows[0]).map(([name, value]) => [name, text(value)])));
    } catch (error) {
      words.textContent = error.message;
    }
  }
  load();
  return { element, tick: load };
}
