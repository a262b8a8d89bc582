// Drawn here, 16 by 16, in the colour of the text.
// SPDX-License-Identifier: Apache-2.0
import { html } from "../vendor/preact.js";

const PATHS = {
  folder: "M1.8 4.2c0-.7.5-1.2 1.2-1.2h3l1.5 1.7h5.5c.7 0 1.2.5 1.2 1.2v6c0 .7-.5 1.2-1.2 1.2H3c-.7 0-1.2-.5-1.2-1.2z",
  file: "M4 1.8h5l3 3v8.4c0 .5-.4 1-1 1H4c-.6 0-1-.5-1-1V2.8c0-.6.4-1 1-1zM9 1.8v3h3",
  link: "M6.5 9.5l3-3M7 4.5l1-1a2.5 2.5 0 0 1 3.6 3.6l-1 1M9 11.5l-1 1A2.5 2.5 0 0 1 4.4 9l1-1",
  other: "M8 2.2l5 2.9v5.8l-5 2.9-5-2.9V5.1z",
  export: "M2.5 4.5c0-1.2 2.5-2 5.5-2s5.5.8 5.5 2v7c0 1.2-2.5 2-5.5 2s-5.5-.8-5.5-2zM2.5 4.5c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2M2.5 8c0 1.2 2.5 2 5.5 2s5.5-.8 5.5-2",
  up: "M8 13V3M4 7l4-4 4 4", refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2.2v2.6h-2.6",
  copy: "M2 8h11M9 4l4 4-4 4", sync: "M2 6h10M9 3l3 3-3 3M14 10H4M7 7l-3 3 3 3",
  rename: "M3 13l.7-3L10.5 3.200l2.300 2.300L6 12.300z", move: "M2 8h8M7 5l3 3-3 3M13.500 3v10",
  make: "M1.8 4.2c0-.7.5-1.200 1.200-1.200h3l1.500 1.700h5.500c.7 0 1.200.5 1.200 1.200v6c0 .7-.5 1.200-1.200 1.200H3c-.7 0-1.200-.5-1.200-1.200zM8 7v4M6 9h4",
  remove: "M3 4.500h10M6.500 4.500V3h3v1.500M4.500 4.500l.6 8.500h5.800l.6-8.500M7 7v3.500M9 7v3.500",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.500V11M8 5v.1", search: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.300 10.300L13.500 13.500",
  pause: "M5.500 3.500v9M10.500 3.500v9", play: "M5 3l7.500 5L5 13z", stop: "M4 4h8v8H4z", check: "M3 8.500l3.500 3.500L13 4.500",
  close: "M4 4l8 8M12 4l-8 8", user: "M8 8a2.700 2.700 0 1 0 0-5.400A2.700 2.700 0 0 0 8 8zM2.800 13.500c.6-2.700 2.700-4 5.200-4s4.600 1.300 5.200 4",
  back: "M13 8H3M7 4L3 8l4 4", sent: "M4 12L12 4M6 4h6v6", got: "M12 4L4 12M10 12H4V6",
};
export const icon = (name) => html`<svg width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor"
  stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
