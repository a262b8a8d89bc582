# The console where both panes are other nodes: the gateway's requests, and a real Chromium where there is one.
# SPDX-License-Identifier: Apache-2.0
import os

import browsers
import pytest
from console_test import ended
from harness import Console, Group, group_missing
from harness.system import same_bytes

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

NAMES = ["one.h5", "three.h5", "two.h5"]


@pytest.fixture(scope="module")
def group():
    with Group(["home", "alpha", "beta"], bytes_needed=1 << 28) as nodes:
        for name in ("alpha", "beta"):
            nodes[name].add_export("data", nodes[name].export(), "rwm")
            nodes[name].write_configuration()
        console = Console(nodes["home"])
        nodes.start()
        console.start()
        yield nodes, console
        assert console.stop() == 0, console.daemon.log_tail()
        assert not console.daemon.log_lines("Traceback"), console.daemon.log_tail(60)


@pytest.fixture(scope="module")
def page(group):
    return group[1].browser()


def filled(node, directory, names):
    made = node.export() / directory
    made.mkdir()
    for name in names:
        (made / name).write_bytes(os.urandom(100_000))
    return made


def same_files(source, destination):
    return sorted(os.listdir(destination)) == NAMES and all(same_bytes(source / name, destination / name) for name in NAMES)


def sides(directory):
    return {"from": {"node": "alpha", "path": f"data/{directory}"}, "to": {"node": "beta", "path": f"data/{directory}"}}


def test_names_of_one_are_copied_to_the_other_and_none_comes_here(group, page):
    nodes, _ = group
    source, there = filled(nodes["alpha"], "copied", NAMES), filled(nodes["beta"], "copied", [])
    done = ended(page, page.ask("copy", **sides("copied"), names=NAMES)["id"])
    assert done["names"]["done"] == 3 and (done["from"], done["peer"]) == ("alpha", "beta"), done
    assert same_files(source, there)
    assert list(nodes["home"].export().iterdir()) == []


def test_a_synchronisation_of_them_is_shown_first_and_then_done(group, page):
    nodes, _ = group
    source, there = filled(nodes["alpha"], "synced", NAMES), filled(nodes["beta"], "synced", ["two.h5", "extra.h5"])
    totals = page.lines("compare", **sides("synced"))[-1]["totals"]
    assert (totals["new"], totals["changed"], totals["extra"]) == (2, 1, 1)
    ended(page, page.ask("sync", **sides("synced"), names=NAMES)["id"])
    assert (there / "extra.h5").exists(), "nobody asked for that"
    (there / "extra.h5").unlink()
    assert same_files(source, there)


def test_one_that_is_gone_is_named(group, page):
    nodes, _ = group
    filled(nodes["alpha"], "refused", NAMES)
    nodes["beta"].control.stop()
    status, message = page.refused("names/list", {"node": "beta", "path": "data"})
    nodes["beta"].start_control()
    assert status == 422 and "beta" in message


@pytest.mark.skipif(bool(browsers.missing()), reason=browsers.missing())
def test_in_a_browser_three_names_are_copied_and_a_directory_synchronised(group):
    from playwright.sync_api import expect, sync_playwright

    nodes, console = group
    source, there = filled(nodes["alpha"], "panes", [*NAMES, "zero.txt"]), filled(nodes["beta"], "panes", [])
    with sync_playwright() as playwright:
        browser = browsers.launch(playwright)
        window = browsers.Window(browser, console).sign_in()
        window.show("left", "alpha", "data", "panes").show("right", "beta", "data", "panes").focus("left")
        page = window.page
        page.keyboard.press("+")
        page.get_by_role("textbox", name="Pattern").fill("*.h5")
        page.keyboard.press("Enter")
        expect(window.pane("left")).to_contain_text("3 names selected")
        page.keyboard.press("F5")
        page.get_by_role("dialog").get_by_role("button", name="Copy").click()
        for name in NAMES:
            expect(window.row("right", name)).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Sessions").click()
        expect(page.locator(".session").first.locator(".pill")).to_have_text("succeeded", timeout=60_000)
        expect(page.locator(".session").first).to_contain_text("alpha")
        expect(page.locator(".session").first).to_contain_text("beta")
        assert same_files(source, there)
        page.get_by_role("link", name="Files", exact=True).click()
        window.show("left", "alpha", "data", "panes").show("right", "beta", "data", "panes").focus("left")
        page.keyboard.press("F4")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("1 new", timeout=60_000)
        dialog.get_by_role("button", name="Send 1 name").click()
        expect(window.row("right", "zero.txt")).to_be_visible(timeout=60_000)
        window.close()
        browser.close()
    assert same_bytes(source / "zero.txt", there / "zero.txt")
