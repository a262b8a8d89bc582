// A pane: a node, a directory of it, and the list of what is there.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { bytes, counted, joined, lastOf, mode, parentOf, pattern, shown, when } from "./format.js";
import { Grid, stepOf } from "./grid.js";
import { icon } from "./icons.js";
import { filtered, isDirectory, load, sorted, totals, ERROR, MODE, NAME, SIZE, TARGET, TIME, TYPE } from "./listing.js";

export const ROW_HEIGHT = 32;
const ICONS = { d: "folder", f: "file", l: "link" };
const KINDS = { d: "directory", f: "file", l: "link", p: "pipe", s: "socket", c: "device", b: "device", "?": "unknown" };

// The state of a pane, and what can be done with it. `start`: {node, path}.
export function usePane(id, start, remember) {
  const [where, setWhere] = useState(start);
  const [list, setList] = useState({ rows: [], complete: false, error: null });
  const [order, setOrder] = useState({ by: "name", down: false });
  const [filter, setFilter] = useState("");
  const [current, setCurrent] = useState(0);
  const [selected, setSelected] = useState(new Set());
  const [again, setAgain] = useState(0);
  const anchor = useRef(0);
  const wanted = useRef(null); // the name that is to be current once it is there
  const focus = useRef(null);
  useEffect(() => {
    const cut = new AbortController();
    setList((was) => ({ ...was, complete: false, error: null }));
    load(where.node, where.path, cut.signal, (part) => { if (!cut.signal.aborted) setList({ ...part, error: null }); }).catch((error) => {
      if (error.name !== "AbortError" && !cut.signal.aborted) setList({ rows: [], complete: true, error });
    });
    return () => cut.abort();
  }, [where, again]);
  const rows = useMemo(() => filtered(sorted(list.rows, order.by, order.down, true), filter), [list.rows, order, filter]);
  useEffect(() => {
    if (wanted.current !== null) {
      const at = rows.findIndex((row) => row[NAME] === wanted.current);
      if (at >= 0) {
        wanted.current = null;
        setCurrent(at);
        return;
      }
    }
    if (current >= rows.length) setCurrent(Math.max(0, rows.length - 1));
  }, [rows]);
  const sums = useMemo(() => totals(list.rows), [list.rows]);
  const chosen = useMemo(() => list.rows.filter((row) => selected.has(row[NAME])), [list.rows, selected]);
  const go = (node, path, name = null) => {
    wanted.current = name;
    setList({ rows: [], complete: false, error: null });
    setSelected(new Set());
    setFilter("");
    setCurrent(0);
    setWhere({ node, path });
    remember(id, { node, path });
  };
  const range = (to, add) => {
    const [low, high] = [Math.min(anchor.current, to), Math.max(anchor.current, to)];
    const names = new Set(add ? selected : []);
    for (let i = low; i <= high; ++i) if (rows[i]) names.add(rows[i][NAME]);
    setSelected(names);
  };
  return {
    id, where, list, rows, order, filter, current, selected, sums, chosen, focus, anchor, go, range,
    here: rows[current] ?? null,
    // What an action is about: what is selected, else the current row.
    targets: chosen.length ? chosen : rows[current] ? [rows[current]] : [],
    setFilter, setSelected, setCurrent,
    sort: (by) => setOrder((was) => ({ by, down: was.by === by ? !was.down : by !== "name" })),
    reload: (name = null) => { wanted.current = name; setAgain((times) => times + 1); },
    up: () => { if (where.path) go(where.node, parentOf(where.path), lastOf(where.path)); },
    open: (row) => { if (row && isDirectory(row)) go(where.node, joined(where.path, row[NAME])); },
    toggle: (row) => setSelected((was) => { const names = new Set(was); if (!names.delete(row[NAME])) names.add(row[NAME]); return names; }),
    selectFitting: (text, take) => setSelected((was) => {
      const names = new Set(was), fits = pattern(text);
      for (const row of rows) if (fits.test(row[NAME])) take ? names.add(row[NAME]) : names.delete(row[NAME]);
      return names;
    }),
  };
}

function keyOf(pane, event, page, actions) {
  if (event.ctrlKey || event.metaKey) {
    if (event.key === "a") pane.setSelected(new Set(pane.rows.map((row) => row[NAME])));
    else if (event.key === "f") actions.find(pane);
    else return false;
    return true;
  }
  const step = stepOf(event, pane.current, pane.rows.length, page);
  if (step !== null) {
    if (event.shiftKey) pane.range(step, true);
    else pane.anchor.current = step;
    pane.setCurrent(step);
  } else if ((event.key === " " || event.key === "Insert") && pane.here) {
    pane.toggle(pane.here);
    pane.setCurrent(Math.min(pane.rows.length - 1, pane.current + 1));
    pane.anchor.current = pane.current + 1;
  } else if (event.key === "Enter" && pane.here) {
    isDirectory(pane.here) ? pane.open(pane.here) : actions.run("info", pane.id);
  } else if (event.key === "Backspace" || (event.altKey && event.key === "ArrowUp")) pane.up();
  else if (event.key === "Escape") pane.selected.size ? pane.setSelected(new Set()) : pane.setFilter("");
  else if (event.key === "+" || event.key === "-") actions.pattern(pane, event.key === "+");
  else if (event.key === "Tab" && !event.shiftKey) actions.other(pane.id);
  else if (/^F[2-8]$/.test(event.key)) actions.key(event.key, pane.id);
  else if (event.key === "Delete") actions.key("F8", pane.id);
  else return false;
  return true;
}

function Crumbs({ pane }) {
  const parts = pane.where.path ? pane.where.path.split("/") : [];
  return html`<nav class="crumbs" aria-label="Directory">
    <button class="bare" onClick=${() => pane.go(pane.where.node, "")} aria-current=${parts.length ? null : "location"}>Exports</button>
    ${parts.map((part, i) => html`<span aria-hidden="true">/</span><button class="bare" aria-current=${i === parts.length - 1 ? "location" : null}
      onClick=${() => pane.go(pane.where.node, parts.slice(0, i + 1).join("/"))}><bdi>${shown(part)}</bdi></button>`)}
  </nav>`;
}

function header(pane, by, text, wide) {
  const is = pane.order.by === by;
  return html`<div role="columnheader" class=${wide} aria-sort=${is ? (pane.order.down ? "descending" : "ascending") : "none"}>
    <button class="bare" tabindex="-1" onClick=${() => pane.sort(by)}>${text}<span aria-hidden="true">${is ? (pane.order.down ? " ↓" : " ↑") : ""}</span></button></div>`;
}

function cells(row, isExports) {
  const what = isDirectory(row) ? (isExports ? "export" : "folder") : (ICONS[row[TYPE]] ?? "other");
  return html`<div role="gridcell" class="c-name" title=${row[ERROR] || shown(row[NAME])}>
      <span class=${`i-${what}`}>${icon(what)}</span><span class="sr">${isExports ? "export" : KINDS[row[TYPE]]} </span><bdi>${shown(row[NAME])}</bdi>
      ${row[TARGET] && html`<span class="quiet"> → <bdi>${shown(row[TARGET])}</bdi></span>`}
      ${row[ERROR] && html`<span class="pill bad">unreadable</span>`}</div>
    <div role="gridcell" class="c-size num">${row[TYPE] === "f" ? bytes(row[SIZE]) : ""}</div>
    <div role="gridcell" class="c-time num">${isExports ? "" : when(row[TIME])}</div>
    <div role="gridcell" class="c-mode mono quiet">${isExports ? "" : mode(row[MODE])}</div>`;
}

function emptiness(pane) {
  const { error, complete, rows } = pane.list;
  if (error) return html`<div class="empty"><h2>It cannot be listed</h2><p>${error.message}</p><button onClick=${() => pane.reload()}>${icon("refresh")} Try again</button></div>`;
  if (!complete) return html`<div class="loading" aria-label="Loading">${[62, 48, 70, 40, 55].map((width) =>
    html`<div class="skeleton" ref=${(element) => { if (element) element.style.width = `${width}%`; }}></div>`)}</div>`;
  if (rows.length) return html`<div class="empty"><h2>Nothing fits</h2><p>No name here fits the filter.</p><button onClick=${() => pane.setFilter("")}>Clear the filter</button></div>`;
  if (!pane.where.path) return html`<div class="empty"><h2>No exports</h2><p>This node exports nothing to you. An operator adds an [[export]] to its node.toml.</p></div>`;
  return html`<div class="empty"><h2>Empty</h2><p>Nothing is in this directory.</p></div>`;
}

export function Pane({ pane, nodes, active, actions, onFocus, onMenu, onDrop }) {
  const isExports = !pane.where.path;
  const label = `${nodes.find((one) => one.id === pane.where.node)?.text ?? "?"}, ${pane.where.path ? shown(pane.where.path) : "exports"}`;
  const key = (event) => {
    const page = Math.max(1, Math.floor(event.currentTarget.clientHeight / ROW_HEIGHT) - 2);
    if (event.target === event.currentTarget && keyOf(pane, event, page, actions)) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  const row = (at, event) => {
    if (event.shiftKey) pane.range(at, event.ctrlKey);
    else if (event.ctrlKey || event.metaKey) pane.toggle(pane.rows[at]);
    else pane.setSelected(new Set());
    if (!event.shiftKey) pane.anchor.current = at;
    pane.setCurrent(at);
  };
  const sums = pane.chosen.length ? totals(pane.chosen) : pane.sums;
  return html`<section class=${`pane${active ? " active" : ""}`} aria-label=${`Pane ${pane.id}`} data-pane=${pane.id} onfocusin=${onFocus}>
    <div class="pane-head">
      <label class="sr" for=${`${pane.id}-node`}>Node of the pane</label>
      <select id=${`${pane.id}-node`} value=${pane.where.node} onChange=${(event) => pane.go(event.target.value, "")}>
        ${nodes.map((one) => html`<option value=${one.id}>${one.text}</option>`)}
      </select>
      <div class="find">${icon("search")}<input type="search" class="filter" placeholder="Filter" aria-label=${`Filter of the ${pane.id} pane`} value=${pane.filter}
        onInput=${(event) => pane.setFilter(event.target.value)}
        onKeyDown=${(event) => { if (event.key === "Escape" || event.key === "Enter" || event.key === "ArrowDown") { if (event.key === "Escape") pane.setFilter(""); pane.focus.current.focus(); event.preventDefault(); } }} /></div>
      <button class="bare" aria-label="Load the list again" title="Load again" onClick=${() => pane.reload()}>${icon("refresh")}</button>
    </div>
    <div class="pane-path"><button class="bare" aria-label="Up" title="Up (Backspace)" disabled=${isExports} onClick=${pane.up}>${icon("up")}</button><${Crumbs} pane=${pane} /></div>
    <${Grid} id=${`grid-${pane.id}`} label=${label} rows=${pane.rows} rowHeight=${ROW_HEIGHT} columnCount=${4} current=${pane.current} busy=${!pane.list.complete}
      columns=${html`${header(pane, "name", "Name", "c-name")}${header(pane, "size", "Size", "c-size")}${header(pane, "time", "Modified", "c-time")}<div role="columnheader" class="c-mode">Mode</div>`}
      cells=${(one) => cells(one, isExports)} isSelected=${(one) => pane.selected.has(one[NAME])} mark=${(one) => (one[ERROR] ? "bad" : "")} focusRef=${pane.focus}
      onKey=${key} onRow=${row} onOpen=${(at) => (isDirectory(pane.rows[at]) ? pane.open(pane.rows[at]) : actions.run("info", pane.id))}
      onMenu=${(event, at) => { event.preventDefault(); if (at !== null) { if (!pane.selected.has(pane.rows[at][NAME])) pane.setSelected(new Set()); pane.setCurrent(at); } onMenu(event); }}
      onDrag=${(at, event) => { if (!pane.selected.has(pane.rows[at][NAME])) { pane.setSelected(new Set()); pane.setCurrent(at); } event.dataTransfer.setData("application/x-sluice-pane", pane.id); event.dataTransfer.effectAllowed = "copy"; }}
      onDrop=${(event) => onDrop(event.dataTransfer.getData("application/x-sluice-pane"))} empty=${emptiness(pane)} />
    <p class="pane-foot num" aria-live="polite">${pane.chosen.length ? html`<strong>${counted(pane.chosen.length, "name")} selected</strong>` : ""}
      ${pane.list.complete && !pane.list.error ? html`${isExports ? counted(pane.list.rows.length, "export") : html`${counted(sums.files, "file")}, ${counted(sums.directories, "directory", "directories")}, ${bytes(sums.bytes)}`}` : html`${pane.list.error ? "" : html`Loading ... ${counted(pane.list.rows.length, "name")}`}`}
      ${pane.filter && html` · ${counted(pane.rows.length, "name")} shown`}</p>
  </section>`;
}
