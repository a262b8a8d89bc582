// One session: how fast it goes and what holds it, its lanes, its files, and what can be done about it.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useState } from "../vendor/preact.js";
import { call, lines } from "./api.js";
import { Chart } from "./chart.js";
import { AskDialog, closeButton, Dialog, FormDialog } from "./dialogs.js";
import { bytes, count, counted, parseRate, rate, shown, span, when } from "./format.js";
import { icon } from "./icons.js";
import { figures, isSent, left, loss, pace, Progress, title, tone, way } from "./sessions.js";
import { hasEnded, store, toast } from "./store.js";

const AGAIN_MS = 2000;

function useDetail(id, live) {
  const [full, setFull] = useState(null);
  const [problem, setProblem] = useState("");
  const load = async () => {
    try {
      setFull(await call("sessions/show", { id }));
      setProblem("");
    } catch (error) {
      setProblem(error.message);
    }
  };
  const over = live ? hasEnded(live) : full !== null && hasEnded(full);
  useEffect(() => {
    void load();
    if (over) return;
    const timer = setInterval(() => { if (!document.hidden) void load(); }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [id, over, live?.state]);
  return { full: full && live ? { ...full, ...live, files: full.files, cause: live.cause ?? full.cause } : full, problem, load };
}

async function order(what, session, load) {
  try {
    await call(`sessions/${what}`, { id: session.id });
    await load();
  } catch (error) {
    toast(error.message, "bad");
  }
}

function Orders({ session, load, setOpen }) {
  if (store.me.role === "viewer") return null;
  const ended = hasEnded(session), paused = session.state === "paused";
  return html`<div class="orders" role="toolbar" aria-label="What to do with this session">
    ${!ended && (paused ? html`<button class="main" onClick=${() => order("continue", session, load)}>${icon("play")} Continue</button>` : html`<button onClick=${() => order("pause", session, load)}>${icon("pause")} Pause</button>`)}
    ${!ended && html`<button onClick=${() => setOpen("limit")}>Limit</button><button onClick=${() => setOpen("priority")}>Priority</button>`}
    ${ended && session.state !== "cancelled" && html`<button onClick=${() => setOpen("verify")}>${icon("check")} Verify</button>`}
    ${session.state === "succeeded" && store.me.role === "operator" && html`<button onClick=${() => setOpen("receipt")}>Receipt</button>`}
    <button onClick=${() => setOpen("log")}>Log</button>
    ${!ended && html`<button class="danger" onClick=${() => setOpen("cancel")}>${icon("stop")} Cancel</button>`}
  </div>`;
}

function Verify({ session, onClose }) {
  const [files, setFiles] = useState(new Map());
  const [problem, setProblem] = useState("");
  const [over, setOver] = useState(false);
  useEffect(() => {
    const cut = new AbortController();
    (async () => {
      for await (const one of lines("sessions/verify", { id: session.id }, cut.signal)) setFiles((all) => new Map(all).set(one.file, one));
      setOver(true);
    })().catch((error) => { if (error.name !== "AbortError") setProblem(error.message); });
    return () => cut.abort();
  }, []);
  const all = [...files.values()], bad = all.filter((one) => one.done && !one.good);
  return html`<${Dialog} title="Verify" wide onClose=${onClose}><div class="body"><h1>Verify</h1>
    <p class="quiet">This node reads its files of the session back from the disk and compares them with what its journal knows.</p>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <p aria-live="polite">${over ? (bad.length ? html`<span class="pill bad">${counted(bad.length, "file")} not good</span>` : html`<span class="pill good">All good: ${counted(all.length, "file")}</span>`) : problem ? "" : "Reading ..."}</p>
    <ul class="list" tabindex="0">${all.map((one) => html`<li><span class=${`pill ${one.done ? (one.good ? "good" : "bad") : "live"}`}>${one.done ? (one.good ? "good" : "bad") : `${bytes(one.checked)} of ${bytes(one.total)}`}</span> <bdi>${shown(one.file)}</bdi> ${one.problem} ${one.digest && html`<code class="quiet">${one.digest}</code>`}</li>`)}</ul>
    <div class="ends"><button class="main" onClick=${onClose}>Close</button></div></div></${Dialog}>`;
}

function Log({ session, onClose }) {
  const [rows, setRows] = useState([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const cut = new AbortController();
    (async () => {
      for await (const part of lines("sessions/log", { id: session.id }, cut.signal)) setRows((all) => [...all, ...part].slice(-2000));
    })().catch((error) => { if (error.name !== "AbortError") setProblem(error.message); });
    return () => cut.abort();
  }, []);
  return html`<${Dialog} title="Log" wide onClose=${onClose}><div class="body"><h1>What its lanes noted</h1>${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <div class="table-scroll" tabindex="0" role="region" aria-label="The log"><table class="tabular"><thead><tr><th>After</th><th>Lane</th><th>What</th><th>Number</th><th>Count or bytes</th></tr></thead>
      <tbody>${rows.map(([us, lane, kind, seq, many]) => html`<tr><td class="num">${(us / 1e6).toFixed(3)} s</td><td class="num">${lane}</td><td>${kind}</td><td class="num">${seq ?? ""}</td><td class="num">${many || ""}</td></tr>`)}</tbody></table></div>
    <div class="ends"><button class="main" onClick=${onClose}>Close</button></div></div></${Dialog}>`;
}

function Receipt({ session, onClose }) {
  const file = session.file[0];
  const [receipt, setReceipt] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => { call("sessions/receipt", { id: session.id }).then((said) => setReceipt(said.receipt), (error) => setProblem(error.message)); }, []);
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([receipt, "\n"], { type: "application/json" }));
    link.download = `${session.id.slice(0, 8)}.receipt`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return html`<${Dialog} title="Receipt" wide onClose=${onClose}><div class="body"><h1>Receipt</h1>
    <p class="quiet">What both nodes agree on, signed with the key of this node. Whoever has the file checks it with <code>sluice receipt --check</code>.</p>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <dl class="facts"><dt>Session</dt><dd><code>${session.id}</code></dd><dt>Direction</dt><dd>${way(session)}</dd><dt>Begun</dt><dd class="num">${when(session.started)}</dd><dt>Bytes</dt><dd class="num">${count(session.total)}</dd><dt>Checksum</dt><dd>${session.crc}</dd><dt>Protection</dt><dd>${session.protection}</dd>
      ${file && html`<dt>First file</dt><dd><bdi>${shown(file[1])}</bdi></dd><dt>Digest at the source</dt><dd><code>${file[5]}</code></dd><dt>Digest at the destination</dt><dd><code>${file[6]}</code></dd>`}</dl>
    <div class="ends"><button onClick=${onClose}>Close</button><button class="main" disabled=${receipt === null} onClick=${save}>Save the receipt</button></div></div></${Dialog}>`;
}

function Opened({ what, session, load, onClose }) {
  const give = (path, more) => async () => { await call(`sessions/${path}`, { id: session.id, ...more }); await load(); };
  switch (what) {
    case "limit": return html`<${AskDialog} title="Limit the rate" label="bit/s on the wire" value=${session.limit ? String(session.limit / 1e6) + "M" : "1G"} help="Such as 2.5G or 800M; 0 takes the limit away. Either node may set one." action="Limit" onClose=${onClose}
        run=${async (text) => { const bps = text.trim() === "0" ? 0 : parseRate(text); if (bps === null) throw new Error(`${text}: is no rate; write one such as 2.5G or 800M.`); await give("limit", { rate_bps: bps })(); }} />`;
    case "priority": return html`<${AskDialog} title="Priority in the queue" label="-100 to 100: the higher goes first" value=${String(session.priority)} help="Of sessions of this node that wait for their turn." action="Set" onClose=${onClose}
        run=${async (text) => { if (!/^-?\d{1,3}$/.test(text.trim())) throw new Error(`${text}: is no number from -100 to 100.`); await give("prioritize", { priority: Number(text) })(); }} />`;
    case "cancel": return html`<${FormDialog} title="Cancel this session?" action="Cancel the session" danger run=${give("cancel", {})} onClose=${onClose}><p><bdi>${title(session)}</bdi>, ${way(session)}. What has its name already stays; unfinished files are removed. A paused session can go on later; a cancelled one cannot.</p></${FormDialog}>`;
    case "verify": return html`<${Verify} session=${session} onClose=${onClose} />`;
    case "log": return html`<${Log} session=${session} onClose=${onClose} />`;
    case "receipt": return html`<${Receipt} session=${session} onClose=${onClose} />`;
    default: return null;
  }
}

function Verdict({ session }) {
  const cause = session.cause;
  if (!cause || cause.cause === "none") return html`<section class="card"><h2>What holds it</h2><p class="quiet">${hasEnded(session) ? "Nothing held it, or it was too short to say." : "Nothing does, or it is too early to say."}</p></section>`;
  return html`<section class="card"><h2>What ${hasEnded(session) ? "held" : "holds"} it</h2><p class="verdict"><strong>${cause.cause}</strong> <span class="quiet num">${Math.round(cause.share * 100)} % of the time</span></p>
    <ul class="evidence">${cause.evidence.map((line) => html`<li>${line}</li>`)}</ul>
    ${session.causes.length > 1 && html`<div class="causes">${session.causes.map((one) => html`<span class="pill">${one.cause} ${Math.round(one.share * 100)} %</span>`)}</div>`}</section>`;
}

function Facts({ session }) {
  const time = left(session);
  const fact = (name, value) => html`<div><h3>${name}</h3><p class="num">${value}</p></div>`;
  return html`<section class="card facts-grid">
    ${fact(hasEnded(session) ? "Goodput" : "Rate", rate(hasEnded(session) ? session.goodput : pace(session)))}${fact("Limit", session.limit ? rate(session.limit) : "none")}
    ${hasEnded(session) ? fact("Took", span(session.elapsed_s)) : fact("Time left", time === null ? "–" : span(time))}${fact("Loss", `${loss(session).toFixed(session.lost ? 2 : 0)} %`)}
    ${fact("Sent again", counted(session.retransmits, "chunk"))}${fact("Round trip", session.rtt_us ? `${(session.rtt_us / 1000).toFixed(2)} ms` : "–")}
    ${fact("Lanes", session.lanes || "–")}${fact("Chunks", session.chunk_bytes ? bytes(session.chunk_bytes) : "–")}${fact("Protection", session.protection || "–")}
    ${fact("Rate found by", session.rate_mode || "–")}${fact("Attempts", session.attempts)}${session.place ? fact("Queue", `${session.place} of ${session.queued}`) : fact("Names", `${count(session.names.done)} of ${count(session.names.total)}`)}</section>`;
}

function Files({ session }) {
  return html`<section class="card"><h2>${counted(session.files.count, "file")}</h2><div class="table-scroll" tabindex="0" role="region" aria-label="Files of the session"><table><thead><tr><th>Name</th><th class="num">Size</th><th>State</th><th>Digest</th></tr></thead>
    <tbody>${session.file.map(([source, destination, size, done, is_done, , digest, names]) => html`<tr><td><bdi>${shown((destination || source).split("/").pop())}</bdi>${names > 1 ? html` <span class="quiet">${count(names)} small names</span>` : ""}</td><td class="num">${bytes(size)}</td>
      <td><span class=${`pill ${is_done ? "good" : hasEnded(session) ? "bad" : "live"}`}>${is_done ? "done" : hasEnded(session) ? "missing" : `${Math.floor(size ? (100 * done) / size : 0)} %`}</span></td><td><code class="quiet">${digest}</code></td></tr>`)}</tbody></table></div>
    ${session.missing.length > 0 && html`<h2>${counted(session.names.failed, "name")} did not arrive</h2><ul class="list" tabindex="0">${session.missing.map(([path, why]) => html`<li><bdi>${shown(path)}</bdi> <span class="quiet">${why}</span></li>`)}</ul>`}</section>`;
}

function Lanes({ session }) {
  if (!session.lane.length) return null;
  return html`<section class="card"><h2>Lanes</h2><div class="table-scroll" tabindex="0" role="region" aria-label="Lanes"><table class="tabular"><thead><tr><th>Lane</th><th class="num">Bytes</th><th class="num">Paced at</th><th class="num">Sent again</th><th class="num">Lost</th><th class="num">Round trip</th></tr></thead>
    <tbody>${session.lane.map(([lane, sent, , again, lost, paced, rtt]) => html`<tr><td>${lane}</td><td class="num">${bytes(sent)}</td><td class="num">${paced ? rate(paced) : "–"}</td><td class="num">${count(again)}</td><td class="num">${count(lost)}</td><td class="num">${rtt ? `${(rtt / 1000).toFixed(2)} ms` : "–"}</td></tr>`)}</tbody></table></div></section>`;
}

export function Detail({ id, live }) {
  const { full, problem, load } = useDetail(id, live);
  const [open, setOpen] = useState("");
  const close = () => (location.hash = "#/sessions");
  if (!full) return html`<aside class="detail page" aria-label="Session"><div class="detail-head"><h1>Session ${id.slice(0, 8)}</h1><span class="spring"></span>${closeButton(close)}</div>${problem ? html`<p class="problem" role="alert">${problem}</p>` : html`<div class="skeleton wide"></div>`}</aside>`;
  return html`<aside class="detail page" aria-label=${`Session ${id.slice(0, 8)}`}>
    <div class="detail-head"><span class="s-icon" aria-hidden="true">${icon(isSent(full) ? "sent" : "got")}</span><div><h1><bdi>${title(full)}</bdi></h1><p class="quiet num">${way(full)} · ${when(full.started)} · <code>${id.slice(0, 8)}</code>${full.user ? ` · ${shown(full.user)}` : ""}</p></div><span class="spring"></span><span class=${`pill ${tone(full)}`}>${full.state}</span>${closeButton(close, "Close the session")}</div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${full.error && html`<p class="problem"><strong>${full.error_name}</strong>: ${full.error}</p>`}
    <div class="big-progress"><${Progress} session=${full} /><p class="num"><strong>${bytes(full.done)}</strong> <span class="quiet">of ${bytes(full.total)}${full.listing ? ", still being listed" : ""} · ${figures(full)}</span></p></div>
    <${Orders} session=${full} load=${load} setOpen=${setOpen} />
    <section class="card"><h2>Rate</h2><${Chart} history=${full.history} running=${!hasEnded(full)} /></section>
    <${Verdict} session=${full} /><${Facts} session=${full} /><${Lanes} session=${full} /><${Files} session=${full} />
    ${open && html`<${Opened} what=${open} session=${full} load=${load} onClose=${() => setOpen("")} />`}
  </aside>`;
}
