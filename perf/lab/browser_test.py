# The page of `./dev lab seeds` in a browser that has no network: Chromium, headless, in an empty network namespace. Skipped where
# there is no Chromium, or no right to make a namespace.
# SPDX-License-Identifier: Apache-2.0
import re
import shutil
import subprocess

import pytest
from harness.system import is_root
from lab.seeds import drawing, page, papers, results
from lab.seeds.command import COMMITTED

_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


def _load(path, folder):
    """(the document as it was built, what its console said)"""
    command = ["unshare", "--net", "--", _BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               f"--user-data-dir={folder}/profile", "--enable-logging=stderr", "--dump-dom", path.as_uri()]  # fmt: skip
    finished = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    return finished.stdout, re.findall(r":CONSOLE[^\]]*\] (.*)", finished.stderr)


@pytest.mark.skipif(_BROWSER is None or not is_root(), reason="needs Chromium, and root for an empty network namespace")
def test_the_page_loads_without_a_network_and_without_errors(tmp_path):
    known = papers.load()
    found = results.load()
    path = tmp_path / "page.html"
    path.write_text(page.page(known, drawing.draw(known, found, {}), found), encoding="utf-8")
    document, console = _load(path, tmp_path)
    assert console == []
    assert all(f'id="{name}"' in document for name in known.exhibits)
    assert document.count("<svg") == document.count("<title id=") == document.count("<desc id=") > 20
    # It would be seen if anything were loaded.
    path.write_text(path.read_text().replace("<body>", '<body><img src="http://example.org/x.png"/><script>missing()</script>'))
    assert _load(path, tmp_path)[1] != []


def test_every_picture_of_the_rendering_has_a_text():
    text = (COMMITTED / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[(.*?)\]\(([\w.-]+)\)", text)
    assert len(pictures) > 20 and all(words and (COMMITTED / name).exists() for words, name in pictures)
