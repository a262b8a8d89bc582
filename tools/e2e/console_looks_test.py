# How the console looks, and to whom: no serious fault of accessibility on any page, in the light, in the dark and on a phone;
# the pictures of TUTORIAL; and what it costs. SLUICE_PICTURES=DIR keeps pictures.
# SPDX-License-Identifier: Apache-2.0
import gzip
import os
import pathlib
import re

import browsers
import pytest
from harness import Console, wait_until

if browsers.missing():
    pytest.skip(browsers.missing(), allow_module_level=True)
from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import expect, sync_playwright  # noqa: E402

PICTURES = os.environ.get("SLUICE_PICTURES")
PHONE = {"viewport": {"width": 360, "height": 740}}
WEIGHT_MAX = 120 * 1024  # gzipped, all files
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def console(make_pair):
    consoles = []

    def prepare(made):
        made.b.add_export("data", made.b.export(), "rwm")
        made.b.write_configuration()
        consoles.append(Console(made.a))
        _fill(made.a.export())
        (made.b.export() / "archive").mkdir()

    pair = make_pair(bytes_needed=1 << 30, prepare=prepare)
    consoles[0].start()
    consoles[0].pair = pair
    assert pair.a.sluice("send", pair.a.export() / "detector-burst.h5", "b:data/").returncode == 0
    yield consoles[0]
    consoles[0].stop()


def _fill(directory):
    for name, size in (("detector-burst.h5", 48 << 20), ("calibration.h5", 3 << 20), ("notes.txt", 900), ("run042.h5", 24 << 20)):
        (directory / name).write_bytes(os.urandom(size))
    for name in ("2026-11-25", "2026-11-26", "2026-11-27", "results"):
        (directory / name).mkdir()
        (directory / name / "run.h5").write_bytes(os.urandom(100_000))


@pytest.fixture(scope="module")
def browser(console):
    with sync_playwright() as playwright:
        started = browsers.launch(playwright)
        yield started
        started.close()


@pytest.fixture(scope="module")
def session(console):
    """One that runs for as long as the tests do."""
    pair = console.pair
    with open(pair.a.export() / "night.h5", "wb") as file:
        file.write(b"x" * (64 << 20))
    id = pair.a.must("send", "--detach", "--rate", "1M", pair.a.export() / "night.h5", "b:data/archive/").stdout.split()[-1]
    yield id
    pair.a.sluice("session", "cancel", id)


def look(window, name, wide=True):
    """Without a serious fault, and for a picture."""
    page = window.page
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"]}).response["violations"]
    serious = [(one["id"], [node["html"][:160] for node in one["nodes"]][:3]) for one in found if one["impact"] in ("serious", "critical")]
    if PICTURES:
        pathlib.Path(PICTURES).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png")
    assert not serious, (name, serious)
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0, f"{name}: {overflow} px wider than the window"


@pytest.mark.parametrize("name, options", [("light", {}), ("dark", {"color_scheme": "dark"}), ("phone", PHONE), ("phone-dark", {**PHONE, "color_scheme": "dark"})])
def test_every_page_is_for_everybody(browser, console, session, name, options):
    window = browsers.Window(browser, console, **options)
    window.page.goto(console.origin)
    expect(window.page.get_by_role("heading", name="Sign in to Sluice")).to_be_visible()
    look(window, f"sign-in-{name}")
    window.sign_in()
    page = window.page
    phone = "viewport" in options
    window.show("left", "", "data")
    expect(window.row("left", "notes.txt")).to_be_visible()
    if phone:
        page.get_by_role("button", name=re.compile("^Right")).click()
    window.show("right", "b", "data")
    expect(window.row("right", "archive")).to_be_visible()
    if phone:
        page.get_by_role("button", name=re.compile("^Left")).click()
    window.focus("left")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    for _ in range(2):
        page.keyboard.press("Insert")
    expect(page.get_by_label("Running sessions")).to_be_visible()
    look(window, f"files-{name}")
    page.locator("[data-action=info]").click()
    expect(page.get_by_role("dialog")).to_contain_text("Mode")
    look(window, f"properties-{name}")
    page.keyboard.press("Escape")
    page.locator("[data-action=copy]").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look(window, f"copy-{name}")
    page.keyboard.press("Escape")
    if phone:
        window.row("left", "notes.txt").click(button="right")
    else:
        window.focus("left")
        page.keyboard.press("Shift+F10")
    expect(page.get_by_role("menu")).to_be_visible()
    look(window, f"menu-{name}")
    page.keyboard.press("Escape")
    page.locator("[data-action=sync]").click()
    expect(page.get_by_role("dialog")).to_contain_text("to send")
    look(window, f"sync-{name}")
    page.keyboard.press("Escape")
    page.goto(f"{console.origin}/#/sessions")
    expect(page.get_by_role("link", name=re.compile("night.h5"))).to_be_visible()
    look(window, f"sessions-{name}")
    page.get_by_role("link", name=re.compile("night.h5")).click()
    expect(page.locator(".uplot canvas")).to_be_visible()
    wait_until(lambda: page.locator(".uplot canvas").count() == 1, 10, "it is drawn")
    look(window, f"session-{name}")
    page.goto(f"{console.origin}/#/nodes")
    expect(page.get_by_text("answers", exact=True)).to_be_visible()
    look(window, f"nodes-{name}")
    page.get_by_role("button", name="Examine the host").click()
    expect(page.get_by_label("Findings")).to_be_visible()
    look(window, f"doctor-{name}")
    window.close()


def test_a_node_without_peers_says_what_to_do(browser, console):
    """The page of the first run, as a node that trusts nobody would show it."""
    pair = console.pair
    pair.a.must("node", "distrust", "b")
    try:
        window = browsers.Window(browser, console)
        window.sign_in()
        expect(window.page.get_by_text("A transfer takes two")).to_be_visible()
        look(window, "first-run-light")
        window.close()
    finally:
        pair.a.must("node", "trust", "b", pair.b.certificate, "--address", pair.b.address)


def test_the_pages_weigh_little(console):
    static = pathlib.Path(console.program).parent.parent / "lib/sluice-console/static"
    files = [path for path in static.rglob("*") if path.suffix in (".js", ".css", ".html", ".svg")]
    weight = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files)
    assert weight <= WEIGHT_MAX, f"{weight} bytes in {len(files)} files"
