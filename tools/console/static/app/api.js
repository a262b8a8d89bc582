// The way to the gateway: calls, lines as they come, and the stream of events. Every call is a POST with both halves of
// the sign-in (the cookie, and the page key that only pages of this origin have).
// SPDX-License-Identifier: Apache-2.0
const KEY = "sluice-key";
let signedOut = () => {};

export class ConsoleError extends Error {
  constructor(said, status) {
    super(said.message);
    this.name = said.name;
    this.code = said.code;
    this.status = status;
  }
}

export const whenSignedOut = (told) => (signedOut = told);
export const hasKey = () => localStorage.getItem(KEY) !== null;
export const forgetKey = () => localStorage.removeItem(KEY);

async function ask(path, given, signal) {
  let response;
  try {
    response = await fetch(`api/${path}`, {
      method: "POST", body: JSON.stringify(given), signal, credentials: "same-origin",
      headers: { "content-type": "application/json", "x-sluice-key": localStorage.getItem(KEY) ?? "" },
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ConsoleError({ name: "console_unreachable", code: 4, message: "The console does not answer; it is tried again." }, 0);
  }
  if (response.ok) return response;
  let said = { name: "internal", code: 1, message: response.status === 401 ? "The sign-in at the proxy has ended: load this page again." : `The console answered ${response.status}.` };
  try {
    said = (await response.json()).error ?? said;
  } catch { /* not one of ours: a proxy's page */ }
  const error = new ConsoleError(said, response.status);
  if (response.status === 401 && path !== "sign-in") signedOut(error);
  throw error;
}

export async function call(path, given = {}, signal) {
  return (await ask(path, given, signal)).json();
}

async function* parts(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Lines of JSON. One that breaks off before its end is an error, like one that says so.
export async function* lines(path, given = {}, signal) {
  let rest = "";
  for await (const part of parts(await ask(path, given, signal))) {
    const all = (rest + part).split("\n");
    rest = all.pop();
    for (const line of all) {
      const said = JSON.parse(line);
      if (said?.error?.message && said.error.code) throw new ConsoleError(said.error, 0);
      if (said?.end === true) return;
      if (said?.end === false) break;
      yield said;
    }
  }
  throw new ConsoleError({ name: "broken_off", code: 4, message: "The list broke off; load it again." }, 0);
}

// Events until `signal`, over every break: told(kind, what). kind "lost": the stream broke, and is opened again.
async function followAlone(told, signal) {
  for (let wait = 250; !signal.aborted; wait = Math.min(wait * 2, 4000)) {
    try {
      let rest = "";
      for await (const part of parts(await ask("events", {}, signal))) {
        wait = 250;
        const all = (rest + part).split("\n\n");
        rest = all.pop();
        for (const one of all) {
          const found = /^event: (\w+)\ndata: (.*)$/s.exec(one);
          if (found) told(found[1], JSON.parse(found[2]));
          else told("alive", {});
        }
      }
    } catch (error) {
      if (error.status === 401 || error.name === "AbortError") return;
    }
    if (signal.aborted) return;
    told("lost", {});
    await new Promise((go) => setTimeout(go, wait));
  }
}

// The same for all pages of this browser together: one of them has the stream, and tells the others. When it goes, the next
// has it. A browser makes six connections to a server of HTTP/1.1: with a stream each, a seventh page would hang.
export async function follow(told, signal) {
  const name = `sluice-events-${(localStorage.getItem(KEY) ?? "").slice(0, 12)}`;
  const channel = new BroadcastChannel(name);
  const reach = {}; // what a page that comes later must know
  let leads = false;
  const tell = (kind, what) => {
    if (signal.aborted) return;
    if (kind === "lost" || kind === "control") reach[kind] = what;
    if (kind === "control" || kind === "alive") delete reach.lost;
    told(kind, what);
    channel.postMessage({ kind, what });
  };
  channel.onmessage = ({ data }) => {
    if (data.kind !== "hello") told(data.kind, data.what);
    else if (leads) for (const [kind, what] of Object.entries(reach)) channel.postMessage({ kind, what });
  };
  signal.addEventListener("abort", () => channel.close());
  channel.postMessage({ kind: "hello" });
  await navigator.locks.request(name, { signal }, () => {
    leads = true;
    return followAlone(tell, signal);
  }).catch((error) => { if (error.name !== "AbortError") throw error; });
}

// By the secret of a link; without one by what the proxy says of who is there.
export async function signIn(secret) {
  const made = await call("sign-in", secret ? { secret } : {});
  localStorage.setItem(KEY, made.key);
  return made;
}
