// Dialogs and menus: the element <dialog>, which keeps the focus within and gives it back.
// SPDX-License-Identifier: Apache-2.0
import { html, useLayoutEffect, useRef, useState } from "../vendor/preact.js";
import { icon } from "./icons.js";

// To where it was, unless somebody has gone elsewhere meanwhile: a key that comes next must not act there.
export function giveFocus(element) {
  if (document.activeElement === null || document.activeElement === document.body) element?.focus?.();
}

export function Dialog({ title, children, onClose, wide }) {
  const element = useRef(null);
  // Before the next key: what is typed at once belongs to the dialog.
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => queueMicrotask(() => giveFocus(before));
  }, []);
  return html`<dialog ref=${element} class=${wide ? "wide" : ""} aria-label=${title}
      onCancel=${(event) => { event.preventDefault(); onClose(); }}
      onClick=${(event) => { if (event.target === element.current) onClose(); }}>${children}</dialog>`;
}

// run() begins it; what it throws is shown, and the dialog stays.
export function FormDialog({ title, children, action, danger, run, onClose, wide, ready = true }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const ends = useRef(null);
  // Enter does what the dialog is for; but of what cannot be taken back it must be chosen.
  useLayoutEffect(() => { ends.current.querySelector(danger || !ready ? "button" : ".main").focus(); }, []);
  const submit = async (event) => {
    event.preventDefault();
    if (busy || !ready) return;
    setBusy(true);
    setProblem("");
    try {
      await run();
      onClose();
    } catch (error) {
      setProblem(error.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} wide=${wide}>
    <form onSubmit=${submit}>
      <h1>${title}</h1>
      ${children}
      ${problem && html`<p class="problem" role="alert">${problem}</p>`}
      <div class="ends" ref=${ends}>
        <button type="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class=${`main${danger ? " danger" : ""}`} disabled=${busy || !ready}>${busy ? "..." : action}</button>
      </div>
    </form>
  </${Dialog}>`;
}

// One line of text.
export function AskDialog({ title, label, value = "", action, help, run, onClose, select }) {
  const [text, setText] = useState(value);
  const field = useRef(null);
  useLayoutEffect(() => {
    field.current.focus();
    field.current.setSelectionRange(0, select ?? value.length);
  }, []);
  return html`<${FormDialog} title=${title} action=${action} onClose=${onClose} run=${() => run(text)} ready=${text !== ""}>
    <label class="field"><span>${label}</span>
      <input ref=${field} value=${text} onInput=${(event) => setText(event.target.value)} autocomplete="off" spellcheck="false" />
      ${help && html`<small>${help}</small>`}</label>
  </${FormDialog}>`;
}

// items: {text, key, run, why, danger} or null for a line. `why`: it is not to be had, and why.
export function Menu({ at, items, label, onClose }) {
  const element = useRef(null);
  useLayoutEffect(() => {
    const menu = element.current;
    menu.style.left = `${Math.max(8, Math.min(at.x, innerWidth - menu.offsetWidth - 8))}px`;
    menu.style.top = `${Math.max(8, Math.min(at.y, innerHeight - menu.offsetHeight - 8))}px`;
    menu.querySelector("button")?.focus();
    const away = (event) => { if (!menu.contains(event.target)) onClose(); };
    addEventListener("pointerdown", away, true);
    return () => removeEventListener("pointerdown", away, true);
  }, []);
  const key = (event) => {
    const all = [...element.current.querySelectorAll("button")];
    const now = all.indexOf(document.activeElement);
    const to = { ArrowDown: (now + 1) % all.length, ArrowUp: (now - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
    if (to !== undefined) all[to].focus();
    else if (event.key === "Escape" || event.key === "Tab") onClose();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<div class="menu" role="menu" aria-label=${label} ref=${element} onKeyDown=${key}>
    ${items.map((item) => item === null ? html`<hr />` : html`<button role="menuitem" class=${item.danger ? "danger" : ""} title=${item.why ?? ""}
        aria-disabled=${item.why ? "true" : "false"} onClick=${() => { onClose(); item.run(); }}>
      <span>${item.text}</span>${item.key && html`<kbd>${item.key}</kbd>`}</button>`)}
  </div>`;
}

export const closeButton = (onClose, label = "Close") =>
  html`<button type="button" class="bare" aria-label=${label} onClick=${onClose}>${icon("close")}</button>`;
