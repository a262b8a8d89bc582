// Numbers, times and names as people read them.
// SPDX-License-Identifier: Apache-2.0
const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const DECIMAL = ["", "k", "M", "G", "T"];

function scaled(value, base, units) {
  let step = 0;
  for (; value >= base && step < units.length - 1; ++step) value /= base;
  return [value >= 100 || step === 0 ? value.toFixed(0) : value.toPrecision(3), units[step]];
}

export const bytes = (count) => scaled(count, 1024, BINARY).join(" ");
export function rate(bps) {
  if (bps === null || bps === undefined) return "–";
  const [value, unit] = scaled(bps, 1000, DECIMAL);
  return `${value} ${unit}bit/s`;
}
const GROUPED = new Intl.NumberFormat("en");
export const count = (number) => GROUPED.format(number);
export const counted = (number, noun, many = `${noun}s`) => `${count(number)} ${number === 1 ? noun : many}`;
export const percent = (part, whole) => (whole > 0 ? Math.min(100, (100 * part) / whole) : 0);

const DAY = new Intl.DateTimeFormat("en-CA", { year: "numeric", month: "2-digit", day: "2-digit" });
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
export function when(ms) {
  if (!ms) return "";
  const date = new Date(ms);
  return Number.isNaN(date.valueOf()) ? "" : `${DAY.format(date)} ${CLOCK.format(date)}`;
}
export function span(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 9.95 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")} min`;
  if (s < 172800) return `${Math.floor(s / 3600)}:${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} h`;
  return `${Math.round(s / 86400)} days`;
}
export const mode = (bits) =>
  [6, 3, 0].map((at) => "rwx".split("").map((letter, i) => ((bits >> at) & (4 >> i) ? letter : "-")).join("")).join("");

// What could pass for something else is shown as what it is: control characters, those that turn the direction of text,
// those that cannot be seen, and bytes that are no UTF-8 (lone surrogates; see words.py of the gateway).
const ODD = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
export function shown(name) {
  return name.replace(ODD, (letter) => {
    const code = letter.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16)}`;
    return `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
export const joined = (directory, name) => (directory ? `${directory}/${name}` : name);
export const parentOf = (path) => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const lastOf = (path) => path.slice(path.lastIndexOf("/") + 1);

const UNITS = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 };
// "2.5G" -> bit/s; null: it is none.
export function parseRate(text) {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:bit\/s|bps)?\s*$/i.exec(text);
  return found ? Math.round(Number(found[1]) * UNITS[found[2].toLowerCase()]) : null;
}

// As a shell's: * and ? mean what they do there, all else itself.
export function pattern(text) {
  const source = text.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
  return new RegExp(`^${source}$`, "su");
}
