#!/usr/bin/python3
# What the console costs, on two nodes of this host: first paint, 100,000 names, sessions live in one browser and in five.
# `./dev console-test --figures` runs it and prints a table.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import gzip
import os
import pathlib
import statistics
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "e2e")]
import browsers  # noqa: E402
from harness import Console, Pair, wait_until  # noqa: E402

MANY, SESSIONS, WATCHED_S, TIMES = 100_000, 10, 20, 5
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    words = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def rss_mib(pid):
    line = next(line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def paint(browser, console):
    window = browsers.Window(browser, console)
    window.page.goto(console.origin)
    window.page.get_by_role("heading", name="Sign in").wait_for()
    found = window.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    window.close()
    return found / 1000


def hundred_thousand(browser, console):
    """Seconds until all are shown, milliseconds to the end, MiB of the page's heap."""
    window = browsers.Window(browser, console)
    window.sign_in().show("left", "", "data")
    page = window.page
    window.row("left", "many").wait_for()
    script = """(count) => new Promise((done) => {
      const grid = document.getElementById('grid-left'), begin = performance.now();
      const look = () => { if (grid.getAttribute('aria-rowcount') === String(count + 1)) { observer.disconnect(); requestAnimationFrame(() => done(performance.now() - begin)); } };
      const observer = new MutationObserver(look); observer.observe(grid, {attributes: true});
      document.querySelector('#grid-left [data-row="0"]').dispatchEvent(new MouseEvent('dblclick', {bubbles: true})); })"""
    page.keyboard.press("Home")
    shown_ms = page.evaluate(script, MANY)
    page.locator("#grid-left").focus()
    to_end = """() => new Promise((done) => { const grid = document.getElementById('grid-left'), begin = performance.now();
      grid.dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true}));
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin))); })"""
    end_ms = page.evaluate(to_end)
    session = window.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    heap = session.send("Runtime.getHeapUsage")["usedSize"] / (1 << 20)
    rows = page.locator("#grid-left [role=row]").count()
    window.close()
    return shown_ms / 1000, end_ms, heap, rows


def live(browser, console, count):
    """Part of a core that the console takes with sessions live in so many browsers, and its memory."""
    windows = [browsers.Window(browser, console).sign_in() for _ in range(count)]
    for window in windows:
        window.page.goto(f"{console.origin}/#/sessions")
        window.page.locator(".session .pill.live").nth(SESSIONS - 1).wait_for()
    time.sleep(3)  # what comes of the loading is over
    begin, at = cpu_s(console.daemon.pid), time.monotonic()
    stop = threading.Event()
    stop.wait(WATCHED_S)
    used = (cpu_s(console.daemon.pid) - begin) / (time.monotonic() - at)
    memory = rss_mib(console.daemon.pid)
    for window in windows:
        window.context.close()
    return 100 * used, memory


def weight():
    static = browsers.REPOSITORY / "tools/console/static"
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in static.rglob("*") if path.suffix in (".js", ".css", ".html", ".svg"))


def spread(values, unit, digits=0):
    return f"{statistics.median(values):.{digits}f} {unit} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def row(what, wanted, found):
    print(f"| {what} | {wanted} | {found} |", flush=True)


def main():
    why = browsers.missing()
    if why:
        sys.exit(f"console: {why}")
    from playwright.sync_api import sync_playwright

    with Pair(in_memory=True) as pair, contextlib.ExitStack() as stack:
        console = Console(pair.a)
        many = pair.a.export() / "many"
        many.mkdir()
        for number in range(MANY):
            os.close(os.open(many / f"run{number:06}.h5", os.O_CREAT | os.O_WRONLY, 0o644))
        pair.start()
        console.start()
        stack.callback(console.stop)
        playwright = stack.enter_context(sync_playwright())
        browser = browsers.launch(playwright)
        stack.callback(browser.close)
        print(f"of {TIMES} times: median (least to most)\n\n| case | at least | found |\n|---|---|---|")
        paint(browser, console)
        row("first contentful paint", "0.3 s", spread([paint(browser, console) for _ in range(TIMES)], "s", 2))
        found = list(zip(*[hundred_thousand(browser, console) for _ in range(TIMES)]))
        row("100,000 entries shown", "1.0 s", spread(found[0], "s", 2))
        row("from the first of them to the last", "50 ms", f"{spread(found[1], 'ms')}, with {max(found[3])} rows in the page")
        row("heap of that page, after a collection", "80 MB", spread(found[2], "MiB"))
        for _ in range(SESSIONS):
            pair.a.must("send", "--detach", "--rate", "5M", "memory:100G", "b:null:")
        wait_until(lambda: sum(one["state"] == "transferring" for one in pair.a.sessions()) == SESSIONS, 60, "all sessions run")
        for count, wanted in ((1, "3 %"), (5, "6 %")):
            used, memory = live(browser, console, count)
            row(f"{SESSIONS} sessions live in {count}", f"{wanted} of a core; RSS 80 MB", f"{used:.1f} %; {memory:.0f} MiB")
        row("page weight, gzipped, all files", "120 KB", f"{weight() / 1024:.0f} KiB")
        for one in pair.a.sessions():
            pair.a.sluice("session", "cancel", one["id"])


if __name__ == "__main__":
    main()
