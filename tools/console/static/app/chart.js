// The rate of a session over its time: what the node has kept of it, drawn by uPlot.
// SPDX-License-Identifier: Apache-2.0
import { html, useEffect, useRef } from "../vendor/preact.js";
import { rate, span } from "./format.js";

const DARK = matchMedia("(prefers-color-scheme: dark)");
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// [seconds since data moved], [bit/s], in steps: each point of the history holds for a while.
function series(history) {
  const xs = [], ys = [];
  let at = 0;
  for (const [seconds, bps] of history) {
    xs.push(at, at + seconds);
    ys.push(bps, bps);
    at += seconds;
  }
  return [xs, ys];
}

function options(width) {
  const quiet = colour("--quiet"), line = colour("--line"), accent = colour("--accent");
  const axis = { stroke: quiet, font: "12px system-ui", grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width, height: 176, legend: { show: false }, cursor: { y: false, drag: { x: false } }, scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1)] } },
    axes: [{ ...axis, values: (_, all) => all.map((s) => span(s)), size: 28 }, { ...axis, values: (_, all) => all.map((bps) => rate(bps)), size: 84 }],
    series: [{}, { stroke: accent, width: 2, fill: colour("--accent-soft"), points: { show: false } }],
  };
}

export function Chart({ history, running }) {
  const place = useRef(null);
  const plot = useRef(null);
  const data = series(history);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false, observer = null;
    const draw = async () => {
      const { default: Plot } = await import("../vendor/uplot.js");
      if (gone || !place.current) return;
      plot.current?.destroy();
      plot.current = new Plot(options(place.current.clientWidth), latest.current, place.current);
    };
    if (history.length) void draw();
    observer = new ResizeObserver(() => plot.current?.setSize({ width: place.current.clientWidth, height: 176 }));
    observer.observe(place.current);
    DARK.addEventListener("change", draw);
    return () => { gone = true; observer.disconnect(); DARK.removeEventListener("change", draw); plot.current?.destroy(); plot.current = null; };
  }, [history.length > 0]);
  useEffect(() => { plot.current?.setData(data); }, [history]);
  const most = history.reduce((high, [, bps]) => Math.max(high, bps), 0), last = history.at(-1);
  return html`<figure class="chart" role="img" aria-label=${history.length ? `Rate over time: at most ${rate(most)}, last ${rate(last[1])}` : "No data has moved yet"}>
    <div ref=${place} class="plot"></div>${history.length === 0 && html`<p class="quiet">${running ? "No data has moved yet." : "Nothing is kept of its rate."}</p>`}</figure>`;
}
