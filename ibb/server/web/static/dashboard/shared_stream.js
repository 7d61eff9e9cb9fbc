// A shared worker: one stream for all tabs. By HTTP/1.1 a browser has six connections to a server
// for all of them, and a stream in each tab would leave nothing for the seventh.

import { stream } from "./stream.js";

const tabs = new Set();
let newest = null;
let end = null;

function tell(text) {
  newest = text;
  for (const tab of tabs) tab.postMessage(text);
}

self.onconnect = ({ ports: [tab] }) => {
  tabs.add(tab);
  tab.onmessage = () => {  // it leaves
    tabs.delete(tab);
    if (tabs.size) return;
    end();
    end = newest = null;
  };
  if (newest !== null) tab.postMessage(newest);
  end ??= stream(tell);
};
