// Two panes, and what is done between them.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { call } from "./api.js";
import { AskDialog, giveFocus, Menu } from "./dialogs.js";
import { CopyDialog, DeleteDialog, PropertiesDialog } from "./file_dialogs.js";
import { SyncDialog } from "./sync_dialog.js";
import { joined, shown } from "./format.js";
import { icon } from "./icons.js";
import { isDirectory, NAME } from "./listing.js";
import { Pane, usePane } from "./pane.js";
import { onEnd, store, toast, useStore } from "./store.js";

const PLACES = "sluice-panes";
const NARROW = matchMedia("(max-width: 759px)");

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(PLACES)) ?? {};
  } catch {
    return {};
  }
}
function remember(id, where) {
  localStorage.setItem(PLACES, JSON.stringify({ ...remembered(), [id]: where }));
}

// Which nodes a pane may show. The id of this node is "".
function nodesOf(store) {
  return [{ id: "", text: `${store.node.name} (this node)` }, ...store.node.peers.map((peer) => ({ id: peer.name, text: peer.name }))];
}
function startOf(id, nodes) {
  const before = remembered()[id];
  if (before && nodes.some((one) => one.id === before.node)) return before;
  return { node: (id === "right" && nodes[1]?.id) || "", path: "" };
}

// Why an action is not to be had now; empty: it is.
function reasons(from, to) {
  const inExport = Boolean(from.where.path), none = from.targets.length === 0;
  const choose = inExport ? "" : "Open an export first.";
  const some = choose || (none ? "Choose a name first." : "");
  let between = "";
  if (from.where.node === to.where.node) between = from.where.node === "" ? "Both panes show this node: a transfer has another node at one end. F6 moves within an export." : "Both panes show the same node.";
  else if (from.where.node && to.where.node && store.me.role === "user") between = "Both panes show other nodes. What they send to each other is ordered by operators of this one.";
  else if (!to.where.path) between = "Open an export in the other pane, to say where to.";
  const sameExport = from.where.node === to.where.node && to.where.path && from.where.path.split("/")[0] === to.where.path.split("/")[0];
  return {
    rename: some || (from.targets.length > 1 ? "Rename one name at a time." : ""), info: none ? "Choose a name first." : "", sync: choose || between,
    copy: some || between, make: choose, remove: some,
    move: some || (sameExport ? (from.where.path === to.where.path ? "Both panes show the same directory." : "") : "Names move within one export of one node: show it in both panes. To another node, copy."),
  };
}

const ACTIONS = [
  { id: "rename", key: "F2", text: "Rename", icon: "rename" }, { id: "info", key: "F3", text: "Properties", icon: "info" },
  { id: "sync", key: "F4", text: "Synchronise", icon: "sync" }, { id: "copy", key: "F5", text: "Copy", icon: "copy", main: true },
  { id: "move", key: "F6", text: "Move", icon: "move" }, { id: "make", key: "F7", text: "New directory", icon: "make" },
  { id: "remove", key: "F8", text: "Delete", icon: "remove", danger: true },
];

const otherOf = (id) => (id === "left" ? "right" : "left");

function useActions(panes, activeId, setActiveId, setOpen) {
  const from = panes[activeId], to = panes[otherOf(activeId)];
  const why = reasons(from, to);
  // Of the pane in which a key was pressed; else of the active one.
  const run = (id, of = activeId) => {
    const problem = reasons(panes[of], panes[otherOf(of)])[id];
    setActiveId(of);
    if (problem) toast(problem);
    else setOpen({ kind: id, from: of, targets: panes[of].targets });
  };
  return {
    from, to, why, run, setOpen,
    key: (key, of) => run(ACTIONS.find((one) => one.key === key).id, of),
    find: (pane) => document.querySelector(`[data-pane=${pane.id}] .filter`).focus(),
    pattern: (pane, take) => setOpen({ kind: "pattern", from: pane.id, take, targets: [] }),
    other: (of) => {
      setActiveId(otherOf(of));
      const focus = () => panes[otherOf(of)].focus.current?.focus();
      // At once, so that the next key goes there; on a phone the pane has yet to come.
      if (panes[otherOf(of)].focus.current?.isConnected) focus();
      else requestAnimationFrame(focus);
    },
  };
}

function Opened({ open, panes, nodes, close }) {
  const from = panes[open.from], to = panes[otherOf(open.from)];
  const name = (pane) => nodes.find((one) => one.id === pane.where.node)?.text ?? "?";
  const both = { from, to, fromNode: name(from), toNode: name(to), targets: open.targets, onClose: close };
  const one = open.targets[0];
  const at = (given) => joined(from.where.path, given);
  switch (open.kind) {
    case "copy": return html`<${CopyDialog} ...${both} />`;
    case "sync": return html`<${SyncDialog} ...${both} />`;
    case "remove": return html`<${DeleteDialog} ...${both} />`;
    case "info": return html`<${PropertiesDialog} ...${both} />`;
    case "make": return html`<${AskDialog} title="New directory" label=${`Its name, in ${shown(from.where.path)} at ${name(from)}`} action="Make" onClose=${close}
        run=${async (text) => { await call("names/make", { node: from.where.node, path: at(text) }); from.reload(text); }} />`;
    case "rename": return html`<${AskDialog} title="Rename" label=${`New name of ${shown(one[NAME])}`} value=${one[NAME]} action="Rename" onClose=${close}
        select=${!isDirectory(one) && one[NAME].lastIndexOf(".") > 0 ? one[NAME].lastIndexOf(".") : undefined}
        run=${async (text) => { await call("names/move", { node: from.where.node, from: at(one[NAME]), to: at(text) }); from.setSelected(new Set()); from.reload(text); }} />`;
    case "move": return html`<${AskDialog} title=${open.targets.length === 1 ? `Move ${shown(one[NAME])}` : `Move ${open.targets.length} names`} label="Into the directory" value=${to.where.path} action="Move" onClose=${close}
        run=${async (text) => {
          for (const each of open.targets) await call("names/move", { node: from.where.node, from: at(each[NAME]), to: joined(text, each[NAME]) });
          from.setSelected(new Set()); from.reload(); to.reload(one[NAME]);
        }} />`;
    case "pattern": return html`<${AskDialog} title=${open.take ? "Select by pattern" : "Deselect by pattern"} label="Pattern" value="*" help="* stands for any letters, ? for one." action=${open.take ? "Select" : "Deselect"} onClose=${close}
        run=${async (text) => from.selectFitting(text, open.take)} />`;
    default: return null;
  }
}

function Toolbar({ actions, activeId }) {
  const hint = actions.why.copy && actions.from.targets.length ? actions.why.copy : "";
  return html`<div class="tools" role="toolbar" aria-label=${`What to do with the ${activeId} pane`}>
    ${ACTIONS.map((one) => html`<button class=${one.main ? "main" : one.danger ? "danger" : ""} data-action=${one.id} aria-disabled=${actions.why[one.id] ? "true" : "false"}
        title=${actions.why[one.id] || `${one.text} (${one.key})`} onClick=${() => actions.run(one.id)}>${icon(one.icon)}<span>${one.text}</span><kbd>${one.key}</kbd></button>`)}
    <p class="why quiet" aria-live="polite">${hint}</p></div>`;
}

function Panes({ store }) {
  const nodes = nodesOf(store);
  const left = usePane("left", startOf("left", nodes), remember), right = usePane("right", startOf("right", nodes), remember);
  const panes = { left, right };
  const [activeId, setActiveId] = useState("left");
  const [open, setOpen] = useState(null);
  const [menu, setMenu] = useState(null);
  const [narrow, setNarrow] = useState(NARROW.matches);
  const actions = useActions(panes, activeId, setActiveId, setOpen);
  const latest = useRef(null);
  latest.current = panes;
  useEffect(() => {
    const change = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", change);
    return () => NARROW.removeEventListener("change", change);
  }, []);
  // What a session has brought is seen.
  useEffect(() => onEnd((session) => {
    for (const pane of Object.values(latest.current)) if (pane.where.path && (pane.where.node === session.peer || pane.where.node === "")) pane.reload(pane.here?.[NAME] ?? null);
  }), []);
  const drop = (onto) => (dragged) => {
    if (!panes[dragged] || dragged === onto) return;
    setActiveId(dragged);
    const why = reasons(panes[dragged], panes[onto]).copy;
    if (why) toast(why);
    else setOpen({ kind: "copy", from: dragged, targets: panes[dragged].targets });
  };
  const items = [...ACTIONS.map((one) => ({ text: one.text, key: one.key, why: actions.why[one.id], danger: one.danger, run: () => actions.run(one.id) })), null,
    { text: "Select all", key: "Ctrl+A", run: () => actions.from.setSelected(new Set(actions.from.rows.map((row) => row[NAME]))) },
    { text: "Select by pattern", key: "+", run: () => actions.pattern(actions.from, true) },
    { text: "Deselect by pattern", key: "−", run: () => actions.pattern(actions.from, false) }];
  const show = (pane, id) => html`<${Pane} key=${id} pane=${pane} nodes=${nodes} active=${activeId === id} actions=${actions} onFocus=${() => setActiveId(id)}
      onMenu=${(event) => { setActiveId(id); const box = event.currentTarget.getBoundingClientRect(); setMenu({ x: event.clientX || box.left + 40, y: event.clientY || box.top + 60 }); }} onDrop=${drop(id)} />`;
  return html`<div class="files">
    ${narrow && html`<div class="switch" role="group" aria-label="Which pane is shown">${["left", "right"].map((id) => html`<button aria-pressed=${activeId === id ? "true" : "false"} onClick=${() => setActiveId(id)}><span>${id === "left" ? "Left" : "Right"}: ${panes[id].where.node || store.node.name}</span></button>`)}</div>`}
    <div class="panes">${(!narrow || activeId === "left") && show(left, "left")}${(!narrow || activeId === "right") && show(right, "right")}</div>
    <${Toolbar} actions=${actions} activeId=${activeId} />
    ${open && html`<${Opened} open=${open} panes=${panes} nodes=${nodes} close=${() => { setOpen(null); requestAnimationFrame(() => giveFocus(panes[open.from].focus.current)); }} />`}
    ${menu && html`<${Menu} at=${menu} items=${items} label="Names" onClose=${() => { setMenu(null); requestAnimationFrame(() => giveFocus(panes[activeId].focus.current)); }} />`}
  </div>`;
}

function FirstRun({ node }) {
  return html`<div class="page"><div class="first card"><h1>One node is up. A transfer takes two.</h1>
    <p class="quiet">${node.name} trusts no other node yet. On the other host, install Sluice and make a node; then let the two trust each other. Each command shows one node the other's certificate.</p>
    <ol><li><p>On the other host, here called beta:</p><pre class="mono">sluice node init ~/sluice --name beta --export data=$HOME/data:rw</pre></li>
    <li><p>On this host:</p><pre class="mono">ssh beta.example 'sluice --node ~/sluice node show --certificate' | sluice node trust beta - --address beta.example:7400
sluice node show --certificate | ssh beta.example 'sluice --node ~/sluice node trust ${node.name} - --address THIS-HOST:${(node.address || ":7400").split(":").pop()}'</pre></li>
    <li><p>Come back to this page: beta stands in the right pane.</p></li></ol>
    ${node.exports.length === 0 && html`<p class="pill warn">This node has no exports either: add an [[export]] to its node.toml, and restart sluice-control.</p>`}
    <div class="ends"><button class="main" onClick=${() => location.reload()}>${icon("refresh")} Look again</button></div></div></div>`;
}

export function Files() {
  const store = useStore();
  if (store.me.role === "viewer") return html`<div class="page"><div class="empty"><h2>Names of files are not for viewers</h2><p>You may look at the sessions and the node. An operator of this node can make you a member of [control] group or users_group.</p><a class="button" href="#/sessions">Show the sessions</a></div></div>`;
  if (!store.node) return html`<div class="page"><div class="empty"><h2>${store.nodeError ? "The node does not answer" : "Loading"}</h2><p>${store.nodeError?.message ?? ""}</p></div></div>`;
  if (store.node.peers.length === 0) return html`<${FirstRun} node=${store.node} />`;
  return html`<${Panes} store=${store} />`;
}
