// The node, its peers, and who can send where.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useState } from "../vendor/preact.js";
import { call, lines } from "./api.js";
import { bytes, count, counted, percent, when } from "./format.js";
import { icon } from "./icons.js";
import { loadNode, useStore } from "./store.js";

const RIGHTS = { r: "send files from it", w: "write into it", m: "make, move and delete names" };
const rightsOf = (mode) => [...mode].map((letter) => RIGHTS[letter] ?? letter).join("; ");

// What a peer says of itself, and which exports of it this node sees. Asked anew when wanted.
function usePeers(names, asks) {
  const [answers, setAnswers] = useState({});
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (!asks) return;
    const cut = new AbortController();
    for (const name of names) {
      const note = (more) => { if (!cut.signal.aborted) setAnswers((all) => ({ ...all, [name]: { ...all[name], ...more } })); };
      note({ asking: true, problem: "" });
      call("peer", { peer: name }, cut.signal).then((about) => note({ about, asking: false }), (error) => { if (error.name !== "AbortError") note({ problem: error.message, about: null, asking: false }); });
      (async () => {
        const rows = [];
        for await (const part of lines("names/list", { node: name, path: "" }, cut.signal)) rows.push(...part);
        note({ exports: rows.map((row) => row[0]) });
      })().catch(() => note({ exports: null }));
    }
    return () => cut.abort();
  }, [names.join(), again, asks]);
  return [answers, () => setAgain((times) => times + 1)];
}

function Fact({ name, children }) {
  return html`<div><h3>${name}</h3><p>${children}</p></div>`;
}

function health(node) {
  const found = [];
  if (!node.attached) found.push(["bad", "sluice-dataplane is not attached: nothing moves. Start it."]);
  if (node.link === "down") found.push(["bad", "The link of the data port is down. Look at the cable, or at the switch."]);
  if (node.fallback) found.push(["bad", `Sockets of this host carry the data since ${when(node.fallback.since)}: ${node.fallback.device} is gone (${node.fallback.reason}). Sessions go on, slower. RUNBOOK, "The card died".`]);
  else if (node.falls) found.push(["warn", `${node.device} was gone ${counted(node.falls, "time")} since the dataplane started; it carries the data again.`]);
  for (const wait of node.waits) found.push(["warn", `The file system of export ${wait.export} has not answered for ${Math.round(wait.seconds)} s.`]);
  for (const [daemon, box] of Object.entries(node.sandbox)) {
    if (!box.text && !box.calls) continue;
    if (!box.calls || !box.landlock) found.push(["warn", `sluice-${daemon} runs with less of a sandbox than it could: ${box.text}`]);
    if (box.refused) found.push(["warn", `The sandbox refused ${count(box.refused)} calls of sluice-${daemon}; its log names them.`]);
  }
  for (const peer of node.peers) if (peer.offered) found.push(["warn", `${peer.name} offers a new key. Compare it and take it with 'sluice node trust'.`]);
  if (node.longest_turn_ns > 1e9) found.push(["warn", `sluice-control was held up for ${(node.longest_turn_ns / 1e9).toFixed(1)} s by ${node.longest_turn}.`]);
  return found;
}

// What `sluice doctor` finds on the host, asked for by hand: it tries disks and takes seconds.
function Doctor() {
  const [checks, setChecks] = useState(null);
  const [state, setState] = useState("");
  const [problem, setProblem] = useState("");
  const examine = async () => {
    setState("busy");
    setProblem("");
    try {
      setChecks((await call("doctor")).checks);
    } catch (error) {
      setProblem(error.message);
    }
    setState("");
  };
  const tally = (level) => (checks ?? []).filter((one) => one[0] === level).length;
  return html`<div class="doctor"><div class="card-head"><h3>The host</h3><span class="spring"></span><button onClick=${examine} disabled=${state === "busy"}>${state === "busy" ? "Examining ..." : checks ? "Examine again" : "Examine the host"}</button></div>
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    ${checks && html`<p aria-live="polite" class="quiet">${tally("fail")} fail, ${tally("warn")} warn, ${tally("pass")} pass</p>
      <ul class="findings" tabindex="0" aria-label="Findings">${checks.map(([level, check, text, remedy]) => html`<li><span class=${`pill ${{ fail: "bad", warn: "warn", pass: "good" }[level]}`}>${level}</span><div><p><strong>${check.replaceAll("_", " ")}</strong> <span class="quiet">${text}</span></p>${remedy && html`<p class="remedy">${remedy}</p>`}</div></li>`)}</ul>`}</div>`;
}

function Health({ node, role }) {
  const found = health(node);
  return html`<section class="card"><h2>Health</h2>${found.length === 0 ? html`<p><span class="pill good">${icon("check")} Nothing is wrong that this node knows of</span></p>` : html`<ul class="health">${found.map(([kind, text]) => html`<li><span class=${`dot ${kind}`}></span> ${text}</li>`)}</ul>`}
    ${role === "operator" ? html`<${Doctor} />` : html`<p class="quiet">Disks, limits and clocks are examined by <code>sluice doctor</code> on this host.</p>`}</section>`;
}

function This({ node }) {
  return html`<section class="card"><div class="card-head"><h2>${node.name}</h2><span class="pill live">this node</span><span class="spring"></span><span class=${`dot ${node.attached ? "" : "bad"}`}></span><span class="quiet">${node.attached ? "dataplane attached" : "no dataplane"}</span></div>
    <div class="facts-grid"><${Fact} name="Version">${node.version}</${Fact}><${Fact} name="Peers reach it at">${node.address || "it only calls"}</${Fact}><${Fact} name="Data port">${node.device}${node.link ? `, link ${node.link}` : ""}</${Fact}><${Fact} name="Addresses">${[node.ip4, node.ip6].filter(Boolean).join(", ") || "–"}</${Fact}>
      <${Fact} name="Workers">${node.workers}</${Fact}><${Fact} name="Frames">${count(node.frame_bytes)} bytes at most</${Fact}><${Fact} name="Checksums by">${node.crc || "–"}</${Fact}><${Fact} name="Memory">${node.hugepages ? "hugepages" : "ordinary pages"}</${Fact}></div>
    <p class="quiet fingerprint">Key <code>${node.fingerprint}</code></p></section>`;
}

function Exports({ node }) {
  return html`<section class="card"><h2>Exports of this node</h2>${node.exports.length === 0 ? html`<p class="quiet">None: add an [[export]] to node.toml, and restart sluice-control.</p>` : html`<div class="table-scroll" tabindex="0" role="region" aria-label="Exports"><table><thead><tr><th>Name</th><th>Path</th><th>Peers may</th></tr></thead><tbody>${node.exports.map((one) => html`<tr><td><strong>${one.name}</strong></td><td><bdi class="mono">${one.path}</bdi></td><td>${rightsOf(one.mode)}</td></tr>`)}</tbody></table></div>`}</section>`;
}

function PeerCard({ peer, answer }) {
  const about = answer?.about;
  return html`<section class="card"><div class="card-head"><h2>${peer.name}</h2><span class="spring"></span><span class=${`dot ${about ? "" : answer?.problem ? "bad" : "off"}`}></span><span class="quiet">${about ? "answers" : answer?.problem ? "does not answer" : answer?.asking ? "being asked" : "not asked"}</span></div>
    ${answer?.problem && html`<p class="problem">${answer.problem}</p>`}
    <div class="facts-grid"><${Fact} name="Address">${peer.address || "it calls us"}</${Fact}><${Fact} name="Software">${about?.software ?? "–"}</${Fact}><${Fact} name="Round trip">${about ? `${(about.round_trip_ns / 1e6).toFixed(2)} ms` : "–"}</${Fact}><${Fact} name="Its clock">${about ? `${(about.clock_offset_ns / 1e6).toFixed(1)} ms off, ± ${(about.clock_error_ns / 1e6).toFixed(1)}` : "–"}</${Fact}></div>
    ${about?.spaces.map((space) => html`<div class="space"><p><strong>${space.name}</strong> <span class="quiet num">${bytes(space.free)} free of ${bytes(space.size)}</span></p><div class="progress still" role="meter" aria-valuemin="0" aria-valuemax="100" aria-valuenow=${Math.round(percent(space.size - space.free, space.size))} aria-label=${`Used of ${space.name}`}><div ref=${(element) => { if (element) element.style.width = `${percent(space.size - space.free, space.size)}%`; }}></div></div></div>`)}
    <p class="quiet fingerprint">Key <code>${peer.fingerprint}</code></p></section>`;
}

// Arrows: solid where it is known that one may write at the other.
function Graph({ node, answers }) {
  const peers = node.peers, height = Math.max(112, peers.length * 72 + 32);
  const mid = height / 2, takes = node.exports.some((one) => one.mode.includes("w")), gives = node.exports.some((one) => one.mode.includes("r"));
  const arrow = (y, from, to, on, text) => html`<g class=${on ? "on" : "off"}><line x1=${from[0]} y1=${from[1]} x2=${to[0]} y2=${to[1]} marker-end=${on ? "url(#tip)" : null} /><title>${text}</title></g>`;
  const words = peers.map((peer) => {
    const answer = answers[peer.name];
    const out = Boolean(answer?.about?.spaces.length);
    return { peer, out, back: takes, said: `${node.name} ${out ? "can" : answer?.about ? "cannot" : "may not, or is not answered,"} send to ${peer.name}; ${peer.name} ${takes ? "can" : "cannot"} send to ${node.name}${gives ? ", and fetch from it" : ""}.` };
  });
  return html`<section class="card"><h2>Who can send where</h2><figure role="img" aria-label=${words.map((one) => one.said).join(" ")}>
    <svg class="graph" viewBox=${`0 0 640 ${height}`} preserveAspectRatio="xMidYMid meet"><defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
      ${words.map(({ peer, out, back, said }, i) => {
        const y = 16 + 36 + i * 72 + (height - 32 - peers.length * 72) / 2;
        return html`${arrow(y, [176, mid - 8], [456, y - 8], out, said)}${arrow(y, [456, y + 8], [176, mid + 8], back, said)}<g class="box"><rect x="464" y=${y - 24} width="160" height="48" rx="10" /><text x="544" y=${y + 5}>${peer.name}</text></g>`;
      })}<g class="box own"><rect x="16" y=${mid - 28} width="152" height="56" rx="10" /><text x="92" y=${mid + 5}>${node.name}</text></g></svg></figure>
    <p class="quiet">An arrow: that node may write into an export of the other. Thin lines: it may not, or does not answer.</p></section>`;
}

function Counters() {
  const [rows, setRows] = useState(null);
  const [problem, setProblem] = useState("");
  const [text, setText] = useState("");
  const load = () => call("counters").then(({ counters }) => { setRows(counters); setProblem(""); }, (error) => setProblem(error.message));
  useEffect(() => {
    void load();
    const timer = setInterval(() => { if (!document.hidden) void load(); }, 5000);
    return () => clearInterval(timer);
  }, []);
  const wanted = (rows ?? []).filter(([name, , help]) => `${name} ${help}`.toLowerCase().includes(text.toLowerCase()));
  return html`<section class="card"><div class="card-head"><h2>Counters of the dataplane</h2><span class="spring"></span><div class="find">${icon("search")}<input type="search" class="filter" placeholder="Filter" aria-label="Filter of the counters" value=${text} onInput=${(event) => setText(event.target.value)} /></div></div>
    ${problem && html`<p class="problem">${problem}</p>`}<div class="table-scroll tall" tabindex="0" role="region" aria-label="Counters"><table><thead><tr><th>Counter</th><th class="num">Value</th><th>What it counts</th></tr></thead><tbody>${wanted.map(([name, unit, help, value]) => html`<tr><td><code>${name}</code></td><td class="num">${unit === "bytes" ? bytes(value) : count(value)}</td><td class="quiet">${help}</td></tr>`)}</tbody></table></div></section>`;
}

export function Nodes() {
  const store = useStore();
  useEffect(() => { void loadNode(); }, []);
  const node = store.node;
  const asks = store.me.role !== "viewer";
  const [answers, again] = usePeers(node?.peers.map((peer) => peer.name) ?? [], store.me.role === "operator");
  if (!node) return html`<div class="page"><div class="empty"><h2>${store.nodeError ? "The node does not answer" : "Loading"}</h2><p>${store.nodeError?.message ?? ""}</p></div></div>`;
  return html`<div class="page"><div class="wide-page"><div class="head"><h1>Nodes</h1><span class="spring"></span><button onClick=${() => { void loadNode(); again(); }}>${icon("refresh")} Look again</button></div>
    <div class="cards"><${This} node=${node} /><${Health} node=${node} role=${store.me.role} /></div>
    ${node.peers.length > 0 && html`<${Graph} node=${node} answers=${answers} />`}
    <h2 class="section">Peers</h2>
    ${node.peers.length === 0 ? html`<div class="card empty"><h2>No peers</h2><p>Let another node and this one trust each other: <code>sluice node trust</code>.</p></div>` : html`<div class="cards">${node.peers.map((peer) => html`<${PeerCard} key=${peer.name} peer=${peer} answer=${answers[peer.name]} />`)}</div>`}
    ${asks && html`<${Exports} node=${node} />`}<${Counters} /></div></div>`;
}
