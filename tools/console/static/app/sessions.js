// All sessions: those that run, those that wait, and those that have ended.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useMemo, useState } from "../vendor/preact.js";
import { bytes, count, counted, percent, rate, shown, span, when } from "./format.js";
import { icon } from "./icons.js";
import { Detail } from "./session.js";
import { hasEnded, loadSessions, useStore } from "./store.js";

const TONES = { succeeded: "good", partial: "warn", failed: "bad", cancelled: "", paused: "warn", waiting: "warn", queued: "", transferring: "live" };
export const tone = (session) => TONES[session.state] ?? "live";
export const isSent = (session) => ["send", "order", "serve-send"].includes(session.direction);
const WORDS = { send: "to", get: "from", "serve-receive": "from", "serve-send": "to" };
export const way = (session) => (session.from ? `${session.from} to ${session.peer}` : `${WORDS[session.direction] ?? ""} ${session.peer}`);
export function title(session) {
  const { first, count: many } = session.files;
  if (!first) return session.listing ? "being listed" : `session ${session.id.slice(0, 8)}`;
  return many > 1 ? `${shown(first.split("/").pop())} and ${count(many - 1)} more` : shown(first.split("/").pop());
}
// The rate of the last second; of a slow session, which moves an extent every few seconds, that of the last twenty.
export function pace(session) {
  const first = session.trail?.[0], last = session.trail?.at(-1);
  if (session.rate || !first || last[0] - first[0] < 5000) return session.rate || null;
  return (8000 * (last[1] - first[1])) / (last[0] - first[0]);
}
export function left(session) {
  const bps = pace(session);
  if (session.state !== "transferring" || !bps || session.listing) return null;
  return ((session.total - session.done) * 8) / bps;
}
export const loss = (session) => (session.chunks ? (100 * session.lost) / (session.chunks + session.retransmits) : 0);

export function Progress({ session }) {
  const part = session.state === "succeeded" ? 100 : percent(session.done, session.total);
  const kind = { good: "good", bad: "bad", live: "" }[tone(session)] ?? "still";
  return html`<div class=${`progress ${kind}`} role="progressbar" aria-valuenow=${Math.round(part)} aria-valuemin="0" aria-valuemax="100" aria-label=${`Progress of ${title(session)}`}>
    <div ref=${(element) => { if (element) element.style.width = `${part}%`; }}></div></div>`;
}

export function figures(session) {
  if (session.state === "queued") return session.place ? `place ${session.place} of ${session.queued}` : "waits for its turn";
  if (session.waiting) return session.waiting;
  if (hasEnded(session)) return session.state === "succeeded" || session.state === "partial" ? `${rate(session.goodput)}, ${span(session.elapsed_s)}` : session.error || "";
  const time = left(session);
  return [rate(pace(session)), time === null ? "" : `${span(time)} left`].filter(Boolean).join(", ");
}

function Row({ session, chosen }) {
  return html`<a class=${`session${chosen ? " chosen" : ""}`} href=${`#/sessions/${session.id}`} aria-current=${chosen ? "true" : null}>
    <span class="s-icon" aria-hidden="true">${icon(isSent(session) ? "sent" : "got")}</span>
    <span class="s-name"><strong><bdi>${title(session)}</bdi></strong><span class="quiet">${way(session)}${session.user ? `, ${shown(session.user)}` : ""} · ${when(session.started)}</span></span>
    <span class="s-bar"><${Progress} session=${session} /><span class="num quiet">${bytes(session.done)} of ${bytes(session.total)}</span></span>
    <span class="s-figures num">${figures(session)}</span>
    <span class=${`pill ${tone(session)}`}>${session.state}</span></a>`;
}

const KINDS = [["all", "All"], ["live", "Running"], ["ended", "Ended"], ["failed", "Failed"]];
const FITS = { all: () => true, live: (one) => !hasEnded(one), ended: hasEnded, failed: (one) => one.state === "failed" || one.state === "partial" };
const PAGE = 200;

export function Sessions({ id }) {
  const store = useStore();
  const [kind, setKind] = useState("all");
  const [text, setText] = useState("");
  const [many, setMany] = useState(PAGE);
  useEffect(() => { void loadSessions(); }, []);
  const all = [...store.sessions.values()];
  const rows = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return all.filter((one) => FITS[kind](one) && (!wanted || `${one.id} ${one.from} ${one.peer} ${one.state} ${one.files.first} ${one.user} ${one.error}`.toLowerCase().includes(wanted)))
      .sort((a, b) => hasEnded(a) - hasEnded(b) || b.started - a.started);
  }, [store.sessions, all.map((one) => one.state).join(), kind, text]);
  const known = id ? store.sessions.get(id) : null;
  return html`<div class=${`sessions${id ? " split" : ""}`}>
    <div class="page list-page"><div class="head"><h1>Sessions</h1><span class="spring"></span>
      <div class="segments" role="group" aria-label="Which sessions">${KINDS.map(([value, word]) => html`<button aria-pressed=${kind === value ? "true" : "false"} onClick=${() => setKind(value)}>${word}</button>`)}</div>
      <div class="find">${icon("search")}<input type="search" class="filter" placeholder="Name, node, id or error" aria-label="Filter of the sessions" value=${text} onInput=${(event) => setText(event.target.value)} /></div></div>
      ${store.sessionsError && html`<p class="problem" role="alert">${store.sessionsError.message}</p>`}
      <div class="session-list">${rows.slice(0, many).map((one) => html`<${Row} key=${one.id} session=${store.sessions.get(one.id) ?? one} chosen=${one.id === id} />`)}
        ${rows.length > many && html`<button onClick=${() => setMany(many + PAGE)}>Show more of ${counted(rows.length, "session")}</button>`}
        ${rows.length === 0 && (store.sessionsKnown ? html`<div class="empty card"><h2>${all.length ? "No session fits" : "No sessions yet"}</h2><p>${all.length ? "Choose others above, or clear the filter." : "Copy something from one pane to the other: it shows here, and goes on when you leave."}</p>${!all.length && html`<a class="button" href="#/files">Show the files</a>`}</div>`
          : !store.sessionsError && html`<div class="empty card"><div class="skeleton wide"></div><p>Loading</p></div>`)}</div></div>
    ${id && html`<${Detail} key=${id} id=${id} live=${known} />`}
  </div>`;
}
