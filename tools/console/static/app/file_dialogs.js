// What is asked before something happens to names, and what is known of one.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useRef, useState } from "../vendor/preact.js";
import { call, lines } from "./api.js";
import { Dialog, FormDialog } from "./dialogs.js";
import { bytes, count, counted, joined, mode, parseRate, shown, when } from "./format.js";
import { isDirectory, NAME, totals, TYPE } from "./listing.js";
import { hasEnded, loadSessions, store, toast } from "./store.js";

const LISTED_MAX = 100;

export function Names({ rows }) {
  return html`<ul class="list" tabindex="0" aria-label="Names">${rows.slice(0, LISTED_MAX).map((row) => html`<li><bdi>${shown(row[NAME])}</bdi>${isDirectory(row) ? "/" : ""}</li>`)}
    ${rows.length > LISTED_MAX && html`<li class="quiet">and ${count(rows.length - LISTED_MAX)} more</li>`}</ul>`;
}

export function TransferOptions({ options, set }) {
  const flag = (key) => (event) => set({ ...options, [key]: event.target.checked });
  return html`${"overwrite" in options && html`<label class="check"><input type="checkbox" checked=${options.overwrite} onChange=${flag("overwrite")} /><span>Replace files that are there already<br /><small class="quiet">Without it they stay, and count as failed unless they are the same.</small></span></label>`}
    <label class="check"><input type="checkbox" checked=${options.verify} onChange=${flag("verify")} /><span>Read each file back before it gets its name<br /><small class="quiet">Every byte is compared in any case; this also reads what the disk has kept.</small></span></label>
    <label class="field"><span>Limit of the rate</span><input value=${options.rate} placeholder="none, such as 2.5G or 800M" onInput=${(event) => set({ ...options, rate: event.target.value })} /><small>bit/s on the wire. Leave it empty for what the path carries.</small></label>`;
}
export function wished({ rate, ...options }) {
  if (rate.trim() === "") return options;
  const rate_bps = parseRate(rate);
  if (!rate_bps) throw new Error(`${rate}: is no rate; write one such as 2.5G or 800M.`);
  return { ...options, rate_bps };
}
export function begun(id) {
  void loadSessions();
  toast("The transfer has begun. It goes on without this page.", "plain", { text: "Show", run: () => (location.hash = `#/sessions/${id}`) });
}

export function CopyDialog({ from, to, fromNode, toNode, targets, onClose }) {
  const [options, set] = useState({ overwrite: false, verify: false, rate: "" });
  const sums = totals(targets);
  const run = async () => {
    const { id } = await call("copy", { from: from.where, to: to.where, names: targets.map((row) => row[NAME]), options: wished(options) });
    from.setSelected(new Set());
    begun(id);
  };
  return html`<${FormDialog} title=${`Copy ${counted(targets.length, "name")}`} action="Copy" run=${run} onClose=${onClose}>
    <dl class="route"><dt>From</dt><dd>${fromNode}: <bdi>${shown(from.where.path)}</bdi></dd><dt>To</dt><dd>${toNode}: <bdi>${shown(to.where.path)}</bdi></dd>
      <dt>What</dt><dd>${[sums.files && `${counted(sums.files, "file")} of ${bytes(sums.bytes)}`, sums.directories && `${counted(sums.directories, "directory", "directories")} with all in ${sums.directories === 1 ? "it" : "them"}`].filter(Boolean).join(", ")}</dd></dl>
    <${Names} rows=${targets} />
    <${TransferOptions} options=${options} set=${set} />
  </${FormDialog}>`;
}

async function removeAll(from, targets, told) {
  const left = [];
  for await (const one of lines("names/remove", { node: from.where.node, path: from.where.path, names: targets.map((row) => row[NAME]), recursive: true }))
    if (one.name !== undefined) {
      told();
      for (const [name, why] of one.problems) left.push(`${shown(name || one.name)}: ${why}`);
    }
  return left;
}

export function DeleteDialog({ from, fromNode, targets, onClose }) {
  const [done, setDone] = useState(0);
  const directories = targets.filter(isDirectory).length;
  const run = async () => {
    setDone(0);
    const left = await removeAll(from, targets, () => setDone((so_far) => so_far + 1));
    from.setSelected(new Set());
    from.reload();
    if (left.length) throw new Error(`Not all could be deleted. ${left.slice(0, 5).join(" ")}`);
    toast(`${counted(targets.length, "name")} deleted at ${fromNode}.`, "good");
  };
  return html`<${FormDialog} title=${`Delete ${counted(targets.length, "name")}?`} action="Delete for good" danger run=${run} onClose=${onClose}>
    <p>At ${fromNode}, in <bdi>${shown(from.where.path)}</bdi>. ${directories ? `${counted(directories, "directory goes", "directories go")} with all that is in ${directories === 1 ? "it" : "them"}. ` : ""}Nothing brings them back.</p>
    <${Names} rows=${targets} />
    ${done > 0 && html`<p class="quiet num" aria-live="polite">${count(done)} of ${count(targets.length)}</p>`}
  </${FormDialog}>`;
}

// What sessions that this node knows say of it: the digest that both ends computed.
function receipts(path, node) {
  const found = [];
  for (const session of store.sessions.values())
    if (session.state === "succeeded" && hasEnded(session) && session.files.first && path.endsWith(`/${session.files.first.split("/").pop()}`) && (node === "" || node === session.peer)) found.push(session);
  return found.slice(0, 5);
}

export function PropertiesDialog({ from, fromNode, targets, onClose }) {
  const row = targets[0], path = joined(from.where.path, row[NAME]);
  const [known, setKnown] = useState(null);
  const [problem, setProblem] = useState("");
  const [tree, setTree] = useState(null);
  const [digests, setDigests] = useState([]);
  const [own, setOwn] = useState(null); // the digest that was asked for: a word while it is read
  const cut = useRef(null);
  useEffect(() => {
    call("names/look", { node: from.where.node, path }).then(setKnown, (error) => setProblem(error.message));
    for (const session of receipts(path, from.where.node))
      call("sessions/show", { id: session.id }).then((full) => {
        const file = full.file.find((one) => path.endsWith(`/${one[1].split("/").pop()}`) || path.endsWith(`/${one[0].split("/").pop()}`));
        if (file?.[6]) setDigests((all) => [...all, { session, digest: file[6], crc: full.crc }]);
      }, () => {});
    cut.current = new AbortController();
    return () => cut.current.abort();
  }, []);
  const read = async () => {
    setOwn({ reading: true });
    try {
      for await (const said of lines("names/digest", { node: from.where.node, path }, cut.current.signal)) if (said.digest) setOwn(said);
    } catch (error) {
      if (error.name === "AbortError") return;
      setOwn(null);
      setProblem(error.message);
    }
  };
  const measure = async () => {
    try {
      for await (const so_far of lines("names/size", { node: from.where.node, path }, cut.current.signal)) setTree({ ...so_far, over: false });
      setTree((last) => ({ ...last, over: true }));
    } catch (error) {
      if (error.name !== "AbortError") setProblem(error.message);
    }
  };
  const fact = (name, value) => value === "" || value === null || value === undefined ? null : html`<dt>${name}</dt><dd class="num">${value}</dd>`;
  return html`<${Dialog} title="Properties" onClose=${onClose}><div class="body">
    <h1><bdi>${shown(row[NAME])}</bdi></h1>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <dl class="facts">${fact("Node", fromNode)}${fact("Path", html`<bdi>${shown(path)}</bdi>`)}
      ${known && html`${fact("Size", known.type === "f" ? `${bytes(known.size)} (${count(known.size)} bytes)` : null)}${fact("On the disk", known.allocated ? bytes(known.allocated) : null)}
        ${fact("Modified", when(known.mtime))}${fact("Mode", mode(known.mode))}${fact("Owner, group", from.where.path ? `${known.uid}, ${known.gid}` : null)}${fact("Hard links", known.type === "f" ? known.links : null)}${fact("Leads to", known.target ? shown(known.target) : null)}`}
      ${tree && fact("In it", `${counted(tree.files, "file")}, ${counted(tree.directories, "directory", "directories")}, ${bytes(tree.bytes)}${tree.over ? "" : " so far ..."}`)}
      ${tree && tree.problems > 0 && fact("Unreadable", count(tree.problems))}</dl>
    ${digests.map((one) => html`<p class="card tight"><span class="quiet">${one.crc} as both ends computed it, ${when(one.session.started)}</span><br /><code>${one.digest}</code> · <a href=${`#/sessions/${one.session.id}`} onClick=${onClose}>session ${one.session.id.slice(0, 8)}</a></p>`)}
    ${own?.digest && html`<p class="card tight"><span class="quiet">CRC-64 of what ${fromNode} holds now</span><br /><code>${own.digest}</code></p>`}
    <div class="ends">${row[TYPE] === "f" && !own?.digest && html`<button onClick=${read} disabled=${Boolean(own)}>${own ? "Reading it ..." : "Compute the digest"}</button>`}${row[TYPE] === "d" && !tree && html`<button onClick=${measure}>Measure the tree</button>`}<button class="main" onClick=${onClose}>Close</button></div>
  </div></${Dialog}>`;
}
