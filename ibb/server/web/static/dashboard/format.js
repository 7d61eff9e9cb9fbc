// Numbers as people read them.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** 1536 -> "1.5 KiB"; what is not known is a dash. */
export function bytes(size) {
  if (size === null || size === undefined) return "–";
  let unit = 0;
  let value = Number(size);
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit && value < 10 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

export const rate = (size) => `${bytes(size)}/s`;

/** 12345 -> "12,345". */
export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return Number(value).toLocaleString("en", { maximumFractionDigits: size < 10 ? 1 : 0 });
}

/** Seconds -> "3 s", "12 min", "5.2 h", "3.1 d". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86400).toFixed(1)} d`;
}

/** Short times in seconds: 0.0023 -> "2.3 ms". */
export function milliseconds(seconds) {
  return seconds === null || seconds === undefined ? "–" : `${number(seconds * 1000)} ms`;
}

/** Seconds since 1970 -> "2026-11-22 14:05:09" in UTC. */
export function moment(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return new Date(seconds * 1000).toISOString().slice(0, 19).replace("T", " ");
}

/** The time of day in the reader's zone, for plots; to the second where all of one is within minutes. */
export function clock(seconds, span) {
  const second = span < 600 ? { second: "2-digit" } : {};
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...second });
}

export const text = (value) => (value === null || value === undefined || value === "" ? "–" : String(value));
