// Elements without markup in strings: what comes from a server is text, whatever stands in it.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "g", "line", "text", "rect", "circle", "title", "polyline"]);

/** Return an element: h("a", {href: "#"}, "text", child); null children are left out. */
export function h(tag, props = {}, ...children) {
  const isSvg = SVG_TAGS.has(tag);
  const node = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return node;
}

/** Put *children* in place of what *node* holds. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined));
}

/** Put *text* into a node that is read aloud when it changes, if it does. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Return a note, none without words. */
export function note(words) {
  return words ? h("p", { class: "note" }, words) : null;
}

/** Return a section with a heading. */
export function section(title, ...children) {
  const id = `h-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  return h("section", { "aria-labelledby": id }, h("h2", { id }, title), ...children);
}

/** Return a list of names and values: [["File", "binlog-000001.ibb"], ...]. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value === "" || value === null ? "–" : value))));
}

/** Call *act* once nothing has asked for it for a while. */
export function debounced(act, milliseconds = 200) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, milliseconds);
  };
}
