// The frame: who is signed in, which page is shown, what has happened, and the transfers that run.
// SPDX-License-Identifier: Apache-2.0
import { html, render, useEffect, useState } from "../vendor/preact.js";
import { call, forgetKey, hasKey, signIn, whenSignedOut } from "./api.js";
import { closeButton, Dialog, Menu } from "./dialogs.js";
import { Files } from "./files.js";
import { when } from "./format.js";
import { icon } from "./icons.js";
import { Nodes } from "./nodes.js";
import { figures, Progress, Sessions, title, way } from "./sessions.js";
import { changed, dropToast, hasEnded, loadNode, loadSessions, startFollowing, stopFollowing, store, toast, useStore } from "./store.js";

let signInProblem = "";

function leave(problem) {
  stopFollowing();
  forgetKey();
  Object.assign(store, { me: null, node: null, sessions: new Map(), sessionsKnown: false });
  signInProblem = problem;
  changed();
}
whenSignedOut((error) => { if (store.me) leave(error.message); });

async function enter() {
  const secret = /^#sign-in=([\w-]{20,128})$/.exec(location.hash)?.[1];
  // A secret is nothing for the history, or for whoever looks on.
  if (secret) history.replaceState(null, "", "./");
  try {
    if (secret || !hasKey()) store.me = await signIn(secret);
    else store.me = await call("me");
  } catch (error) {
    if (error.name === "console_unreachable" && hasKey()) {
      setTimeout(enter, 2000);
      signInProblem = error.message;
    } else {
      if (error.status === 401) forgetKey();
      signInProblem = secret || error.status !== 401 ? error.message : "";
    }
    store.entered = true;
    return changed();
  }
  signInProblem = "";
  store.entered = true;
  startFollowing();
  void loadSessions();
  await loadNode();
}

function SignInPage() {
  const store_ = useStore();
  if (!store_.entered) return html`<p class="boot">Loading the console ...</p>`;
  return html`<main class="sign-in"><div class="card"><img src="icon.svg" width="48" height="48" alt="" /><h1>Sign in to Sluice</h1>
    ${signInProblem && html`<p class="problem" role="alert">${signInProblem}</p>`}
    <p>On the host of this node, run</p><pre class="mono">sluice console open</pre><p class="quiet">and follow the link that it prints. It works once, within a minute, and signs you in as the user who ran the command. There are no passwords.</p></div></main>`;
}

function SignIns({ onClose }) {
  const [rows, setRows] = useState(null);
  const load = () => call("sign-ins").then((said) => setRows(said.sign_ins), (error) => toast(error.message, "bad"));
  useEffect(() => { void load(); }, []);
  const end = async (id) => { try { await call("sign-ins/revoke", { id }); await load(); } catch (error) { toast(error.message, "bad"); } };
  return html`<${Dialog} title="Sign-ins" onClose=${onClose}><div class="body"><h1>Where you are signed in</h1>
    <ul class="list" tabindex="0">${(rows ?? []).map((one) => html`<li class="line"><span><code>${one.id}</code> as ${one.role}, since ${when(one.made)}${one.this ? ", this browser" : ""}</span>${!one.this && html`<button onClick=${() => end(one.id)}>End</button>`}</li>`)}</ul>
    <div class="ends"><button class="main" onClick=${onClose}>Close</button></div></div></${Dialog}>`;
}

function Keys({ onClose }) {
  const keys = [["Tab", "the other pane (Shift+Tab leaves the panes)"], ["↑ ↓ PgUp PgDn Home End", "move; with Shift select on the way"], ["Enter", "open a directory; of a file, its properties"], ["Backspace", "one directory up"], ["Space, Insert", "select, and one down"], ["Ctrl+A, +, −, Esc", "select all, by pattern, less, none"], ["Ctrl+F", "filter"], ["F2", "rename"], ["F3", "properties"], ["F4", "synchronise"], ["F5", "copy to the other pane"], ["F6", "move within an export"], ["F7", "new directory"], ["F8, Delete", "delete"], ["Shift+F10", "menu"]];
  return html`<${Dialog} title="Keys" onClose=${onClose}><div class="body"><h1>Keys, while a pane has the focus</h1><dl class="facts">${keys.map(([key, text]) => html`<dt><kbd>${key}</kbd></dt><dd>${text}</dd>`)}</dl><div class="ends"><button class="main" onClick=${onClose}>Close</button></div></div></${Dialog}>`;
}

function Me({ store: all }) {
  const [menu, setMenu] = useState(null);
  const [open, setOpen] = useState("");
  const out = async () => { try { await call("sign-out"); } catch { /* it has ended anyway */ } leave(""); };
  const items = [{ text: "Keys of the panes", run: () => setOpen("keys") }, { text: "Where you are signed in", run: () => setOpen("sign-ins") }, null, { text: "Sign out", run: out }];
  return html`<button class="bare me" aria-haspopup="menu" aria-label=${`${all.me.name}, ${all.me.role}`} onClick=${(event) => { const box = event.currentTarget.getBoundingClientRect(); setMenu({ x: box.right - 208, y: box.bottom + 4 }); }}>${icon("user")}<span class="me-name">${all.me.name}</span><span class="pill">${all.me.role}</span></button>
    ${menu && html`<${Menu} at=${menu} items=${items} label="You" onClose=${() => setMenu(null)} />`}
    ${open === "keys" && html`<${Keys} onClose=${() => setOpen("")} />`}${open === "sign-ins" && html`<${SignIns} onClose=${() => setOpen("")} />`}`;
}

function Bars({ store: all }) {
  if (!all.console) return html`<div class="bar bad" role="status"><span class="dot bad"></span> The console does not answer. This page tries again by itself; transfers go on.</div>`;
  if (all.control === false) return html`<div class="bar warn" role="status"><span class="dot warn"></span> sluice-control does not answer: ${all.controlMessage || "it is tried again"}</div>`;
  return null;
}

function Dock({ store: all }) {
  const live = [...all.sessions.values()].filter((one) => !hasEnded(one)).sort((a, b) => b.started - a.started);
  if (!live.length) return null;
  return html`<aside class="dock" aria-label="Running sessions">${live.slice(0, 3).map((one) => html`<a key=${one.id} href=${`#/sessions/${one.id}`}><strong><bdi>${title(one)}</bdi></strong><span class="quiet">${way(one)}</span><${Progress} session=${one} /><span class="num quiet">${figures(one)}</span></a>`)}
    ${live.length > 3 && html`<a href="#/sessions">${live.length - 3} more</a>`}</aside>`;
}

function Toasts({ store: all }) {
  return html`<div class="toasts" role="log" aria-live="polite" aria-label="What has happened">${all.toasts.map((one) => html`<div key=${one.id} class=${`toast ${one.kind}`}><p>${one.text}</p>${one.action && html`<button onClick=${() => { one.action.run(); dropToast(one.id); }}>${one.action.text}</button>`}${closeButton(() => dropToast(one.id), "Dismiss")}</div>`)}</div>`;
}

function routeOf() {
  const [, page, id] = /^#\/(files|sessions|nodes)(?:\/([0-9a-f]+))?$/.exec(location.hash) ?? [];
  return { page: page ?? (store.me?.role === "viewer" ? "sessions" : "files"), id: id ?? null };
}

function App() {
  const all = useStore();
  const [, again] = useState(0);
  useEffect(() => {
    const turn = () => { if (location.hash.startsWith("#sign-in=")) void enter(); else again((times) => times + 1); };
    addEventListener("hashchange", turn);
    return () => removeEventListener("hashchange", turn);
  }, []);
  if (!all.me) return html`<${SignInPage} /><${Toasts} store=${all} />`;
  const { page, id } = routeOf();
  const running = [...all.sessions.values()].filter((one) => !hasEnded(one)).length;
  const tab = (name, text, badge) => html`<a href=${`#/${name}`} aria-current=${page === name ? "page" : null}>${text}${badge ? html`<span class="badge num" aria-label=${`${badge} running`}>${badge}</span>` : ""}</a>`;
  return html`<div class="frame"><header class="top"><a class="brand" href="#/files" aria-label="Sluice, files"><img src="icon.svg" width="24" height="24" alt="" /> <span class="brand-name">Sluice</span> <span class="of">${all.node?.name ?? ""}</span></a>
      <nav class="tabs" aria-label="Pages">${tab("files", "Files")}${tab("sessions", "Sessions", running)}${tab("nodes", "Nodes")}</nav><span class="spring"></span><${Me} store=${all} /></header>
    <${Bars} store=${all} />
    <main class="main-page">${page === "files" ? html`<${Files} />` : page === "sessions" ? html`<${Sessions} id=${id} />` : html`<${Nodes} />`}</main>
    ${page === "files" && html`<${Dock} store=${all} />`}<${Toasts} store=${all} /></div>`;
}

render(html`<${App} />`, document.getElementById("app"));
void enter();
