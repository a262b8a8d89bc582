// One directory of one node, as a pane has it: loaded as it comes, sorted, filtered, selected. No markup.
// SPDX-License-Identifier: Apache-2.0
import { lines } from "./api.js";
import { pattern } from "./format.js";

export const NAME = 0, TYPE = 1, SIZE = 2, TIME = 3, MODE = 4, TARGET = 5, ERROR = 6;
const FIRST = 400; // so many rows are shown before all have come
const SHOWN_EVERY_MS = 250;

const below = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const COMPARE = {
  name: (a, b) => below(a[NAME], b[NAME]),
  size: (a, b) => a[SIZE] - b[SIZE] || below(a[NAME], b[NAME]),
  time: (a, b) => a[TIME] - b[TIME] || below(a[NAME], b[NAME]),
};
export const isDirectory = (row) => row[TYPE] === "d";

// Directories first. What comes from a node is in the order of names already.
export function sorted(rows, by, down, inOrder = false) {
  const groups = [rows.filter(isDirectory), rows.filter((row) => !isDirectory(row))];
  for (const group of groups) {
    if (!(inOrder && by === "name")) group.sort(COMPARE[by]);
    if (down) group.reverse();
  }
  return groups[0].concat(groups[1]);
}

export function filtered(rows, text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return rows;
  if (/[*?]/.test(wanted)) {
    const fits = pattern(wanted);
    return rows.filter((row) => fits.test(row[NAME].toLowerCase()));
  }
  return rows.filter((row) => row[NAME].toLowerCase().includes(wanted));
}

// told({rows, complete}) a first time soon, then as more comes.
export async function load(node, path, signal, told) {
  let rows = [], told_ms = 0;
  for await (const part of lines("names/list", { node, path }, signal)) {
    for (const row of part) rows.push(row);
    const now = performance.now();
    if ((told_ms === 0 && rows.length >= FIRST) || (told_ms !== 0 && now - told_ms > SHOWN_EVERY_MS)) {
      told_ms = now;
      told({ rows: rows.slice(), complete: false });
    }
  }
  told({ rows, complete: true });
}

export function totals(rows) {
  let files = 0, directories = 0, bytes = 0;
  for (const row of rows) {
    if (isDirectory(row)) ++directories;
    else {
      ++files;
      bytes += row[TYPE] === "f" ? row[SIZE] : 0;
    }
  }
  return { files, directories, bytes };
}
