// Lines over time, in SVG: drawn from samples, named in words for who cannot see them.

import { fill, h } from "./dom.js";
import { clock } from "./format.js";

const WIDTH = 480;
const HEIGHT = 150;
const LEFT = 4;
const TOP = 8;
const BOTTOM = HEIGHT - 18;

/**
 * Return a plot with .element and .show(samples).
 *
 * lines: [{name, title}] of samples; unit(value) writes a value.
 */
export function plot(title, lines, unit) {
  const svg = h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  const words = h("figcaption");
  const element = h("figure", { class: "plot" }, h("h3", {}, title), svg, words);
  let shown = [];

  function show(samples) {
    shown = samples;
    const values = samples.flatMap((sample) => lines.map((line) => sample[line.name] ?? 0));
    const highest = Math.max(...values, 1) * 1.05;
    const first = samples.length ? samples[0].time : 0;
    const span = Math.max(samples.length ? samples.at(-1).time - first : 0, 1);
    const x = (sample) => LEFT + ((sample.time - first) / span) * (WIDTH - 2 * LEFT);
    const y = (value) => BOTTOM - (value / highest) * (BOTTOM - TOP);
    const grid = [0, 0.5, 1].map((part) => {
      const at = BOTTOM - part * (BOTTOM - TOP);
      return h("line", { class: "grid", x1: LEFT, x2: WIDTH - LEFT, y1: at, y2: at });
    });
    const drawn = lines.map((line, index) => {
      const points = samples
        .filter((sample) => sample[line.name] !== null)
        .map((sample) => `${x(sample).toFixed(1)},${y(sample[line.name]).toFixed(1)}`);
      return h("polyline", { class: `line line${index}`, points: points.join(" ") });
    });
    fill(svg, grid, drawn,
      h("text", { x: LEFT + 2, y: TOP + 9 }, unit(highest / 1.05)),
      h("text", { x: LEFT, y: HEIGHT - 4 }, samples.length ? clock(first, span) : ""),
      h("text", { x: WIDTH - LEFT, y: HEIGHT - 4, class: "end" }, samples.length ? clock(samples.at(-1).time, span) : ""));
    describe();
  }

  function describe() {
    const parts = lines.map((line) => {
      const values = shown.map((sample) => sample[line.name]).filter((value) => value !== null);
      const now = values.length ? unit(values.at(-1)) : "not known";
      const most = values.length ? unit(values.reduce((a, b) => Math.max(a, b))) : "not known";
      return { title: line.title, words: `${now}, at most ${most}` };
    });
    svg.setAttribute("aria-label", `${title}: ${parts.map((p) => `${p.title} ${p.words}`).join("; ")}`);
    fill(words, parts.map((part, index) =>
      h("span", {}, h("i", { class: `key key${index}`, "aria-hidden": "true" }), `${part.title}: ${part.words} `)));
  }
  return { element, show };
}
