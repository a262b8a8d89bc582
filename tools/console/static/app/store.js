// What all pages show alike: who is signed in, the node, and its sessions as they change. Whoever shows a part of it
// listens.
// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "../vendor/preact.js";
import { call, follow } from "./api.js";

const TRAIL_MS = 20_000;
const ENDED = new Set(["succeeded", "partial", "failed", "cancelled"]);
export const hasEnded = (session) => ENDED.has(session.state);

export const store = {
  me: null, node: null, nodeError: null, sessions: new Map(), sessionsKnown: false, sessionsError: null,
  console: true, control: null, controlMessage: "", toasts: [],
};
const listeners = new Set();
let waiting = false;

export function changed() {
  if (waiting) return;
  waiting = true;
  queueMicrotask(() => {
    waiting = false;
    for (const listener of [...listeners]) listener();
  });
}
export function useStore() {
  const [, again] = useState(0);
  useEffect(() => {
    const listener = () => again((times) => times + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return store;
}

let toasts = 0;
// kind: "good", "bad", "plain"; action: {text, run}.
export function toast(text, kind = "plain", action = null) {
  const one = { id: ++toasts, text, kind, action };
  store.toasts = [...store.toasts.slice(-3), one];
  changed();
  setTimeout(() => dropToast(one.id), kind === "bad" ? 15000 : 6000);
}
export function dropToast(id) {
  store.toasts = store.toasts.filter((one) => one.id !== id);
  changed();
}

export async function loadNode() {
  try {
    store.node = await call("node");
    store.me = store.node.me;
    store.nodeError = null;
  } catch (error) {
    store.nodeError = error;
  }
  changed();
}

let loading = null, wantedAgain = false;
// One at a time; who asks meanwhile gets one more.
export async function loadSessions() {
  if (loading) {
    wantedAgain = true;
    return loading;
  }
  loading = fetchSessions();
  await loading;
  loading = null;
  if (wantedAgain) {
    wantedAgain = false;
    await loadSessions();
  }
}

async function fetchSessions() {
  try {
    const { sessions } = await call("sessions/list");
    const before = store.sessions;
    store.sessions = new Map(sessions.map((one) => [one.id, { ...one, trail: before.get(one.id)?.trail }]));
    // What ended while the stream was broken.
    for (const one of sessions) if (hasEnded(one) && before.has(one.id) && !hasEnded(before.get(one.id))) announce(one);
    store.sessionsKnown = true;
    store.sessionsError = null;
  } catch (error) {
    store.sessionsError = error;
  }
  changed();
}

const announced = new Set(); // of those that have ended
function announce(session) {
  if (announced.has(session.id)) return;
  announced.add(session.id);
  const name = session.files.first ? `${session.files.first.split("/").pop()} ` : "";
  const words = { succeeded: "has arrived", partial: "has arrived in part", failed: "failed", cancelled: "was cancelled" };
  toast(`${name}${session.direction === "get" ? "from" : "to"} ${session.peer} ${words[session.state]}${session.error ? `: ${session.error}` : "."}`,
    session.state === "succeeded" ? "good" : session.state === "cancelled" ? "plain" : "bad",
    { text: "Show", run: () => (location.hash = `#/sessions/${session.id}`) });
  for (const told of endings) told(session);
}

function note(event) {
  const before = store.sessions.get(event.id);
  const { event: kind, at, ...figures } = event;
  if (!before) {
    // It began a moment ago, and may be over: its names come with the list.
    const over = hasEnded(event);
    void loadSessions().then(() => { if (over && store.sessions.has(event.id)) announce(store.sessions.get(event.id)); });
    return;
  }
  const trail = [...(before.trail ?? []), [at, event.done]].filter(([then]) => then > at - TRAIL_MS);
  const now = { ...before, ...figures, trail };
  if (hasEnded(now)) {
    if (!hasEnded(before)) now.elapsed_s = Math.max(before.elapsed_s, (at - before.started) / 1000);
    announce(now);
  }
  store.sessions.set(event.id, now);
}

const endings = new Set();
// told(session) once one has ended: panes then look again.
export function onEnd(told) {
  endings.add(told);
  return () => endings.delete(told);
}
let following = null;
export function startFollowing() {
  following?.abort();
  following = new AbortController();
  void follow((kind, what) => {
    if (kind === "events") what.forEach(note);
    if (kind === "again") void loadSessions();
    if (kind === "control") {
      const back = what.reachable && store.control === false;
      store.control = what.reachable;
      store.controlMessage = what.message ?? "";
      if (back || !store.node) void loadNode();
    }
    if (kind === "lost") store.console = false;
    else if (!store.console) {
      store.console = true;
      void loadNode();
      void loadSessions();
    }
    changed();
  }, following.signal);
}
export function stopFollowing() {
  following?.abort();
  following = null;
}
