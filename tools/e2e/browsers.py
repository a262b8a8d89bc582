# A real Chromium for the tests of the console: Debian's, driven by Playwright, which `./dev console-test` fetches.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(REPOSITORY / "build/browser"))  # made by ./dev console-test

CHROMIUM = shutil.which("chromium")


def missing():
    """Why there is no browser here; empty: there is."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "no Playwright: run ./dev console-test once, which fetches it"
    return "" if CHROMIUM else "no chromium: apt-get install chromium"


def launch(playwright, *more):
    """Not by bypassing the policy of the pages: what they may not do, a test may not do either."""
    options = ["--disable-dev-shm-usage", "--font-render-hinting=none", *more]
    if os.geteuid() == 0:
        options.append("--no-sandbox")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=options)


class Window:
    """A window of the console, which collects whatever goes wrong in it."""

    def __init__(self, browser, console, **options):
        self.console = console
        self.problems = []
        options.setdefault("viewport", {"width": 1280, "height": 800})
        self.context = browser.new_context(reduced_motion="reduce", **options)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("console", self._note)

    def _note(self, message):
        # Of requests that are refused, or find nobody, Chromium itself says so.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.problems.append(f"{message.type}: {message.text}")

    def sign_in(self, **given):
        self.page.goto(self.console.link(**given))
        self.page.get_by_role("navigation", name="Pages").wait_for()
        return self

    def close(self):
        if os.environ.get("SLUICE_LAST_PICTURE") and not self.page.is_closed():
            self.page.screenshot(path=os.environ["SLUICE_LAST_PICTURE"])  # to see where a test stood
        self.context.close()
        assert not self.problems, self.problems

    # ---- panes ----

    def pane(self, side):
        return self.page.locator(f"[data-pane={side}]")

    def grid(self, side):
        return self.page.locator(f"#grid-{side}")

    def show(self, side, node, *path):
        """Goes there by the keyboard's way: choose the node, then filter and open each directory."""
        self.pane(side).locator("select").select_option(node)
        for part in path:
            self.row(side, part).dblclick()
        return self

    def row(self, side, name):
        return self.grid(side).get_by_role("row").filter(has=self.page.get_by_text(name, exact=True))

    def focus(self, side):
        self.grid(side).focus()
        return self
