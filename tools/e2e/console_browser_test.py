# The console in a real Chromium, over two real nodes: what people do, and what must not happen to them.
# SPDX-License-Identifier: Apache-2.0
import os
import re

import browsers
import pytest
from harness import Console, wait_until
from harness.system import same_bytes

if browsers.missing():
    pytest.skip(browsers.missing(), allow_module_level=True)
from playwright.sync_api import expect, sync_playwright  # noqa: E402

MANY = 100_000
HOSTILE = [b"<img src=x onerror=document.title='hit'>.h5", b"'\"`;&|$(id)", b"two\nlines", b"back\\slash", b"\xff\xfe bytes",
           "evil\u202egnp.exe".encode(), b"b" * 255]  # fmt: skip
# What a page shows of them.
SHOWN = ["<img src=x onerror=document.title='hit'>.h5", "'\"`;&|$(id)", "two␊lines", "back\\slash", "\\xff\\xfe bytes", "evil\\u202egnp.exe", "b" * 255]
expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def consoles():
    return []


@pytest.fixture(scope="module")
def pair(make_pair, consoles):
    def prepare(made):
        made.b.add_export("data", made.b.export(), "rwm")
        made.b.write_configuration()
        consoles.append(Console(made.a))
        many = made.a.export() / "many"
        many.mkdir()
        for number in range(MANY):
            os.close(os.open(many / f"run{number:06}.h5", os.O_CREAT | os.O_WRONLY, 0o644))

    made = make_pair(bytes_needed=1 << 30, prepare=prepare, in_memory=True)
    consoles[0].start()
    yield made
    consoles[0].stop()


@pytest.fixture(scope="module")
def browser(pair):
    with sync_playwright() as playwright:
        started = browsers.launch(playwright)
        yield started
        started.close()


@pytest.fixture
def open_window(browser, pair, consoles):
    opened = []

    def make(**options):
        opened.append(browsers.Window(browser, consoles[0], **options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.fixture
def window(open_window):
    return open_window().sign_in()


def fill(directory, names=("alpha.h5", "beta.h5", "gamma.h5", "delta.txt")):
    directory.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        (directory / name).write_bytes(os.urandom(1000 + number))
    return directory


def session_ends(window, state="succeeded"):
    window.page.get_by_role("link", name="Sessions").click()
    expect(window.page.locator(".session").first.locator(".pill")).to_have_text(state)


def test_a_hundred_thousand_names_three_of_which_are_copied(window, pair):
    window.show("left", "", "data", "many").show("right", "b", "data")
    expect(window.grid("left")).to_have_attribute("aria-rowcount", str(MANY + 1))
    assert window.grid("left").get_by_role("row").count() < 80, "only what is seen is in the page"
    page = window.focus("left").page
    page.keyboard.press("End")
    expect(window.row("left", f"run{MANY - 1:06}.h5")).to_be_in_viewport()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("Insert")
    expect(window.pane("left")).to_contain_text("3 names selected")
    page.keyboard.press("F5")
    expect(page.get_by_role("dialog")).to_contain_text("Copy 3 names")
    page.get_by_role("dialog").get_by_role("button", name="Copy").click()
    session_ends(window)
    assert sorted(os.listdir(pair.b.export()))[:3] == ["run000000.h5", "run000001.h5", "run000002.h5"]


def test_by_the_keyboard_alone(window, pair):
    fill(pair.a.export() / "keys")
    page = window.show("left", "", "data").show("right", "b", "data").focus("left").page
    page.keyboard.press("Control+f")
    page.keyboard.type("keys")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(window.grid("left")).to_have_attribute("aria-label", re.compile("data/keys"))
    page.keyboard.press("+")
    page.get_by_role("textbox", name=re.compile("^Pattern")).fill("*.h5")
    page.keyboard.press("Enter")
    expect(window.pane("left")).to_contain_text("3 names selected")
    page.keyboard.press("Tab")
    expect(window.grid("right")).to_be_focused()
    page.keyboard.press("F7")
    page.keyboard.type("arrived")
    page.keyboard.press("Enter")
    expect(window.row("right", "arrived")).to_be_visible()
    page.keyboard.press("Enter")
    expect(window.grid("right")).to_have_attribute("aria-label", re.compile("data/arrived"))
    page.keyboard.press("Tab")
    page.keyboard.press("F5")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Enter")
    for name in ("alpha.h5", "beta.h5", "gamma.h5"):
        expect(window.row("right", name)).to_be_visible()
        assert same_bytes(pair.a.export() / "keys" / name, pair.b.export() / "arrived" / name)
    page.keyboard.press("Tab")
    expect(window.grid("right")).to_be_focused()
    page.keyboard.press("F2")
    page.keyboard.type("omega")
    page.keyboard.press("Enter")
    expect(window.row("right", "omega.h5")).to_be_visible()
    page.keyboard.press("F8")
    expect(page.get_by_role("dialog")).to_contain_text("omega.h5")
    page.get_by_role("button", name="Delete for good").press("Enter")
    expect(window.row("right", "omega.h5")).to_have_count(0)
    assert not (pair.b.export() / "arrived/omega.h5").exists()


def test_hostile_names_are_shown_as_what_they_are_and_copied_and_deleted(window, pair):
    odd = pair.a.export() / "odd"
    odd.mkdir()
    for name in HOSTILE:
        with open(os.fsencode(odd) + b"/" + name, "wb") as file:
            file.write(name)
    (pair.b.export() / "odd").mkdir()
    page = window.show("left", "", "data", "odd").show("right", "b", "data", "odd").page
    for name in SHOWN:
        expect(window.row("left", name)).to_have_count(1)
    assert page.locator(".grid img").count() == 0 and page.title() == "Sluice"
    window.focus("left")
    page.keyboard.press("Control+a")
    page.keyboard.press("F5")
    page.get_by_role("dialog").get_by_role("button", name="Copy").click()
    for name in SHOWN:
        expect(window.row("right", name)).to_have_count(1)
    assert sorted(os.listdir(os.fsencode(pair.b.export()) + b"/odd")) == sorted(HOSTILE)
    window.focus("right")
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.get_by_role("button", name="Delete for good").click()
    expect(window.pane("right")).to_contain_text("Nothing is in this directory")
    assert os.listdir(pair.b.export() / "odd") == []
    assert page.title() == "Sluice"


def test_what_is_dragged_to_the_other_pane_is_copied(window, pair):
    fill(pair.a.export() / "drag")
    (pair.b.export() / "dragged").mkdir()
    window.show("left", "", "data", "drag").show("right", "b", "data", "dragged")
    window.row("left", "delta.txt").drag_to(window.grid("right"))
    dialog = window.page.get_by_role("dialog")
    expect(dialog).to_contain_text("delta.txt")
    dialog.get_by_role("button", name="Copy").click()
    expect(window.row("right", "delta.txt")).to_be_visible()


def test_a_synchronisation_shows_what_it_would_do_first(window, pair):
    own = fill(pair.a.export() / "sync-me")
    there = fill(pair.b.export() / "sync-me", ("beta.h5", "extra.h5"))
    page = window.show("left", "", "data", "sync-me").show("right", "b", "data", "sync-me").focus("left").page
    page.keyboard.press("F4")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 new, 1 changed")
    expect(dialog).to_contain_text("1 only there")
    dialog.get_by_role("button", name="Send 4 names").click()
    expect(window.row("right", "alpha.h5")).to_be_visible()
    wait_until(lambda: same_bytes(own / "beta.h5", there / "beta.h5"), 30, "what differed is the same")
    assert (there / "extra.h5").exists(), "nobody asked for that"
    page.keyboard.press("F4")
    dialog.get_by_role("button", name="Delete what stands only there").click()
    dialog.get_by_role("button", name="Delete 1 name").click()
    expect(window.row("right", "extra.h5")).to_have_count(0)
    assert not (there / "extra.h5").exists()


def test_what_cannot_be_ordered_says_why(window):
    window.show("left", "b", "data").show("right", "b", "data")
    page = window.focus("left").page
    copy = page.locator("[data-action=copy]")
    expect(copy).to_have_attribute("aria-disabled", "true")
    expect(copy).to_have_attribute("title", re.compile("same node"))
    copy.click(force=True)
    expect(page.locator(".toast")).to_contain_text("same node")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_session_is_watched_steered_and_survives_the_page(window, open_window, pair, consoles):
    with open(pair.a.export() / "slow.bin", "wb") as file:
        file.write(b"x" * (64 << 20))
    window.show("left", "", "data").show("right", "b", "data")
    window.row("left", "slow.bin").click()
    page = window.page
    page.locator("[data-action=copy]").click()
    page.get_by_role("textbox", name=re.compile("^Limit of the rate")).fill("10M")
    page.get_by_role("dialog").get_by_role("button", name="Copy").click()
    page.get_by_label("Running sessions").get_by_role("link").click()
    detail = page.get_by_role("complementary", name=re.compile("Session"))
    expect(detail).to_contain_text("slow.bin")
    expect(detail.locator(".uplot canvas")).to_be_visible()
    detail.get_by_role("button", name="Pause").click()
    expect(detail.locator(".detail-head .pill")).to_have_text("paused")
    where = page.url
    page.close()
    other = open_window().sign_in()
    other.page.goto(where)
    detail = other.page.get_by_role("complementary", name=re.compile("Session"))
    detail.get_by_role("button", name="Continue").click()
    detail.get_by_role("button", name="Limit", exact=True).click()
    other.page.get_by_role("textbox", name=re.compile("^bit.s on")).fill("0")
    other.page.get_by_role("dialog").get_by_role("button", name="Limit").click()
    expect(other.page.get_by_role("dialog")).to_have_count(0)
    detail.get_by_role("button", name="Cancel").click()
    other.page.get_by_role("button", name="Cancel the session").click()
    expect(detail.locator(".detail-head .pill")).to_have_text("cancelled")


def test_the_page_recovers_from_whatever_dies(window, pair, consoles):
    page = window.show("left", "", "data").page
    consoles[0].daemon.kill()
    expect(page.get_by_role("status")).to_contain_text("The console does not answer")
    consoles[0].daemon.start()
    expect(page.get_by_role("status")).to_have_count(0)
    pair.a.control.kill()
    expect(page.get_by_role("status")).to_contain_text("sluice-control does not answer")
    pair.a.start_control()
    expect(page.get_by_role("status")).to_have_count(0)
    page.get_by_label("Load the list again").first.click()
    expect(window.row("left", "many")).to_be_visible()


def test_many_pages_of_a_browser_share_one_stream(window, pair, consoles):
    """More than the six connections that a browser makes: each page is served, and goes on when the one with the stream has gone."""
    pages = [window.page, *(window.context.new_page() for _ in range(8))]
    for page in pages[1:]:
        page.goto(f"{consoles[0].origin}/#/sessions")
        page.get_by_role("navigation", name="Pages").wait_for()
    wait_until(lambda: [one["watching"] for one in consoles[0].ask("sign-ins")["sign_ins"] if one["watching"]] == [1], 30, "there is one stream")
    with open(pair.a.export() / "shared.bin", "wb") as file:
        file.write(b"x" * (16 << 20))
    pages[0].close()
    id = pair.a.must("send", "--detach", "--rate", "1M", pair.a.export() / "shared.bin", "b:data/").stdout.split()[-1]
    for page in pages[1:]:
        expect(page.locator(f"a[href='#/sessions/{id}'] .pill")).to_have_text("transferring")
    pair.a.sluice("session", "cancel", id)
    for page in pages[1:]:
        expect(page.locator(f"a[href='#/sessions/{id}'] .pill")).to_have_text("cancelled")
    pages[1].get_by_role("button", name=re.compile("operator")).click()
    pages[1].get_by_role("menuitem", name="Sign out").click()
    for page in pages[1:]:
        expect(page.get_by_role("heading", name="Sign in to Sluice")).to_be_visible()


def test_the_properties_of_a_file_have_its_digest_when_wanted(window, pair):
    (pair.a.export() / "digest.bin").write_bytes(os.urandom(100_000))
    page = window.show("left", "", "data").page
    window.row("left", "digest.bin").click()
    window.focus("left")
    page.keyboard.press("F3")
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Compute the digest").click()
    expect(dialog.locator("code")).to_have_text(re.compile("^[0-9a-f]{16}$"))


def test_the_host_is_examined_on_request(window):
    window.page.get_by_role("link", name="Nodes").click()
    window.page.get_by_role("button", name="Examine the host").click()
    findings = window.page.get_by_label("Findings")
    expect(findings.get_by_role("listitem").filter(has_text="configuration")).to_contain_text("pass")


def test_signing_out_is_for_good(open_window, consoles):
    window = open_window()
    link = consoles[0].link()
    window.page.goto(link)
    window.page.get_by_role("navigation", name="Pages").wait_for()
    assert "sign-in" not in window.page.url, "the secret does not stay in the address"
    window.page.get_by_role("button", name=re.compile("operator")).click()
    window.page.get_by_role("menuitem", name="Sign out").click()
    expect(window.page.get_by_role("heading", name="Sign in to Sluice")).to_be_visible()
    window.page.reload()
    expect(window.page.get_by_role("heading", name="Sign in to Sluice")).to_be_visible()
    window.page.goto("about:blank")
    window.page.goto(link)
    expect(window.page.get_by_role("alert")).to_contain_text("has been used")
