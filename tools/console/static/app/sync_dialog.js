// A synchronisation: first what it would do, then, if wanted, that.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useState } from "../vendor/preact.js";
import { call, lines } from "./api.js";
import { FormDialog } from "./dialogs.js";
import { begun, TransferOptions, wished } from "./file_dialogs.js";
import { bytes, count, counted, joined, shown } from "./format.js";
import { toast } from "./store.js";

const SHOWN_MAX = 500;
const WORDS = { new: "will be sent", changed: "will be replaced", extra: "stands only there", kept: "stays", problem: "cannot be compared" };
const TONE = { new: "good", changed: "warn", extra: "", kept: "", problem: "bad" };

// Those that are removed with a directory above them need no word of their own.
function tops(rows) {
  const all = new Set(rows.map((row) => row[1]));
  return rows.filter(([, path]) => {
    for (let at = path.lastIndexOf("/"); at > 0; at = path.lastIndexOf("/", at - 1)) if (all.has(path.slice(0, at))) return false;
    return true;
  });
}

function useComparison(from, to, digests) {
  const [found, setFound] = useState({ rows: [], totals: null, problem: "" });
  useEffect(() => {
    const cut = new AbortController();
    const rows = [];
    setFound({ rows, totals: null, problem: "" });
    (async () => {
      for await (const part of lines("compare", { from: from.where, to: to.where, digests }, cut.signal)) {
        if (Array.isArray(part)) rows.push(...part);
        setFound({ rows, totals: part.totals ?? null, problem: "" });
      }
    })().catch((error) => { if (error.name !== "AbortError") setFound({ rows, totals: null, problem: error.message }); });
    return () => cut.abort();
  }, [digests]);
  return found;
}

function Extra({ to, toNode, rows, onDone }) {
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const gone = tops(rows);
  const remove = async () => {
    setBusy(true);
    let left = 0;
    try {
      for await (const one of lines("names/remove", { node: to.where.node, path: to.where.path, names: gone.map((row) => row[1]), recursive: true, deep: true })) left += one.failed ?? 0;
      toast(left ? `${counted(left, "name")} could not be deleted at ${toNode}.` : `${counted(gone.length, "name")} deleted at ${toNode}.`, left ? "bad" : "good");
    } catch (error) {
      toast(error.message, "bad");
    }
    to.reload();
    onDone();
  };
  if (!sure) return html`<button type="button" class="danger" onClick=${() => setSure(true)}>Delete what stands only there ...</button>`;
  return html`<div class="card tight"><p>${counted(rows.length, "name goes", "names go")} for good at ${toNode}: ${gone.slice(0, 8).map((row) => html`<bdi class="name-chip">${shown(row[1])}</bdi> `)}${gone.length > 8 ? `and ${count(gone.length - 8)} more` : ""}</p>
    <div class="ends"><button type="button" onClick=${() => setSure(false)}>Keep them</button><button type="button" class="main danger" disabled=${busy} onClick=${remove}>Delete ${counted(rows.length, "name")}</button></div></div>`;
}

export function SyncDialog({ from, to, fromNode, toNode, onClose }) {
  const [digests, setDigests] = useState(false);
  const [options, setOptions] = useState({ verify: false, rate: "" });
  const { rows, totals, problem } = useComparison(from, to, digests);
  const sent = rows.filter(([kind]) => kind === "new" || kind === "changed");
  const extra = rows.filter(([kind]) => kind === "extra");
  const weight = sent.reduce((sum, row) => sum + row[3], 0);
  const run = async () => {
    const { id } = await call("sync", { from: from.where, to: to.where, names: sent.map((row) => row[1]), options: wished(options) });
    begun(id);
  };
  return html`<${FormDialog} title="Synchronise" wide action=${totals ? `Send ${counted(sent.length, "name")}` : "Comparing"} run=${run} onClose=${onClose} ready=${totals !== null && sent.length > 0}>
    <dl class="route"><dt>From</dt><dd>${fromNode}: <bdi>${shown(from.where.path)}</bdi></dd><dt>To</dt><dd>${toNode}: <bdi>${shown(to.where.path)}</bdi></dd></dl>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : html`<p aria-live="polite">${totals
      ? html`<strong>${counted(sent.length, "name")}, ${bytes(weight)}</strong> to send (${count(totals.new)} new, ${count(totals.changed)} changed); ${count(totals.same)} the same; ${count(totals.extra)} only there${totals.problems ? html`; <strong>${count(totals.problems)} could not be compared</strong>` : ""}.`
      : html`Comparing ... ${counted(rows.length, "difference")} so far.`}</p>`}
    ${rows.length > 0 && html`<ul class="list preview" tabindex="0" aria-label="Differences">${rows.slice(0, SHOWN_MAX).map(([kind, path, type, size, error]) => html`<li><span class=${`pill ${TONE[kind]}`}>${WORDS[kind]}</span> <span class="path"><bdi>${shown(path)}</bdi>${type === "d" ? "/" : ""}${error && html` <span class="quiet">${error}</span>`}</span>${type === "f" && html`<span class="quiet num">${bytes(size)}</span>`}</li>`)}
      ${rows.length > SHOWN_MAX && html`<li class="quiet">and ${count(rows.length - SHOWN_MAX)} more</li>`}</ul>`}
    ${totals && sent.length === 0 && extra.length === 0 && !problem && html`<p class="pill good">Both directories are the same.</p>`}
    <label class="check"><input type="checkbox" checked=${digests} onChange=${(event) => setDigests(event.target.checked)} /><span>Compare what files hold<br /><small class="quiet">All are read, at both nodes. Without it size and time decide.</small></span></label>
    <${TransferOptions} options=${options} set=${setOptions} />
    ${totals && extra.length > 0 && html`<${Extra} to=${to} toNode=${toNode} rows=${extra} onDone=${onClose} />`}
  </${FormDialog}>`;
}
