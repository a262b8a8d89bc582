// A list of any length of which only what is seen is in the page (role=grid). The current row is always there, since
// aria-activedescendant names it.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/preact.js";

const MARGIN = 8; // rows above and below what is seen

// `cells(row)` gives the cells of a row as vnodes with role=gridcell; `columns` the header's; `mark(row)` its class.
export function Grid({ id, label, rows, cells, columns, columnCount, current, isSelected, onKey, onRow, onOpen, onMenu, onDrag,
  onDrop, mark, rowHeight, empty, busy, focusRef }) {
  const scroller = useRef(null);
  const [seen, setSeen] = useState({ top: 0, height: 400 });
  const measure = () => {
    const at = scroller.current;
    if (at) setSeen((was) => (was.top === at.scrollTop && was.height === at.clientHeight ? was : { top: at.scrollTop, height: at.clientHeight }));
  };
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(scroller.current);
    return () => observer.disconnect();
  }, []);
  // What is current is seen.
  useLayoutEffect(() => {
    const at = scroller.current;
    const head = at.firstElementChild.offsetHeight;
    const top = current * rowHeight, room = at.clientHeight - head;
    if (top < at.scrollTop) at.scrollTop = top;
    else if (top + rowHeight > at.scrollTop + room) at.scrollTop = top + rowHeight - room;
    measure();
  }, [current, rows]);
  const first = Math.max(0, Math.floor(seen.top / rowHeight) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((seen.top + seen.height) / rowHeight) + MARGIN);
  const there = [];
  if (current < first && current < rows.length) there.push(current);
  for (let i = first; i < last; ++i) there.push(i);
  if (current >= last && current < rows.length) there.push(current);
  const at = (event) => {
    const row = event.target.closest("[data-row]");
    return row ? Number(row.dataset.row) : null;
  };
  return html`<div class="grid" role="grid" id=${id} tabindex="0" aria-label=${label} aria-rowcount=${rows.length + 1}
      aria-colcount=${columnCount} aria-multiselectable="true" aria-busy=${busy ? "true" : "false"}
      aria-activedescendant=${rows.length ? `${id}-${current}` : null} onScroll=${measure} onKeyDown=${onKey}
      ref=${(element) => { scroller.current = element; if (focusRef) focusRef.current = element; }}
      onClick=${(event) => { const row = at(event); if (row !== null) onRow(row, event); }}
      onDblClick=${(event) => { const row = at(event); if (row !== null) onOpen(row); }}
      onContextMenu=${(event) => onMenu(event, at(event))}
      onDragStart=${(event) => { const row = at(event); if (row !== null) onDrag(row, event); }}
      onDragOver=${(event) => { event.preventDefault(); }}
      onDrop=${(event) => { event.preventDefault(); onDrop(event); }}>
    <div role="row" class="grid-head" aria-rowindex="1">${columns}</div>
    <div role="rowgroup" class="grid-body" ref=${(element) => { if (element) element.style.height = `${rows.length * rowHeight}px`; }}>
      ${there.map((i) => html`<div role="row" key=${i} id=${`${id}-${i}`} data-row=${i} draggable="true"
          class=${`grid-row ${mark(rows[i])}${i === current ? " current" : ""}`} aria-rowindex=${i + 2}
          aria-selected=${isSelected(rows[i]) ? "true" : "false"}
          ref=${(element) => { if (element) element.style.transform = `translateY(${i * rowHeight}px)`; }}>${cells(rows[i])}</div>`)}
    </div>
    ${rows.length === 0 && html`<div class="grid-empty" role="row"><div role="gridcell">${empty}</div></div>`}
  </div>`;
}

// Where a key leads among so many rows; null: nowhere.
export function stepOf(event, current, count, page) {
  const to = { ArrowDown: current + 1, ArrowUp: current - 1, PageDown: current + page, PageUp: current - page, Home: 0, End: count - 1 }[event.key];
  return to === undefined || count === 0 ? null : Math.max(0, Math.min(count - 1, to));
}
