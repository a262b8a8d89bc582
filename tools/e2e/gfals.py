# gfal2's tools and bindings with the plug-in of this build, for a node.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess
import sys

from harness import find_binaries

PLUGINS = pathlib.Path(os.environ.get("SLUICE_GFAL2") or find_binaries().parent / "gfal2-plugins")
LIMIT_S = 240


def gfal_missing():
    """Why gfal2's tools cannot be tried here; None: they can."""
    if shutil.which("gfal-copy") is None:
        return "no gfal-copy: install gfal2-util-scripts"
    try:
        import gfal2  # noqa: F401
    except ImportError:
        return "no Python bindings of gfal2: install python3-gfal2"
    if not (PLUGINS / "libgfal_plugin_sluice.so").exists():
        return f"no plug-in in {PLUGINS}: install libgfal2-dev and build again"
    return None if _of_files() else "gfal2's plug-in for files is missing: install gfal2-plugin-file"


def _of_files():
    return next(pathlib.Path("/usr/lib").glob("*/gfal2-plugins/libgfal_plugin_file.so"), None)


class Gfal:
    """`folder`: ours, where the plug-ins that are to be loaded lie together."""

    def __init__(self, folder, node):
        self.node = node
        plugins = folder / "plugins"
        plugins.mkdir()
        for plugin in (PLUGINS / "libgfal_plugin_sluice.so", _of_files()):
            (plugins / plugin.name).symlink_to(plugin)
        self.environment = {"GFAL_PLUGIN_DIR": str(plugins), "SLUICE_NODE": str(node.directory)}

    def run(self, verb, *words, **environment):
        """`gfal-VERB`: a CompletedProcess. Its exit status is an errno."""
        command = [sys.executable, shutil.which(f"gfal-{verb}"), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env={**os.environ, **self.environment, **environment})  # fmt: skip

    def must(self, verb, *words):
        ran = self.run(verb, *words)
        assert ran.returncode == 0, f"gfal-{verb} {words}: {ran.returncode}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def python(self, text, *words):
        """A program of its own, with the bindings."""
        return subprocess.run([sys.executable, "-c", text, *map(str, words)], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False, env={**os.environ, **self.environment})  # fmt: skip

    def context(self):
        """Of the bindings in this process."""
        import gfal2

        os.environ.update(self.environment)
        return gfal2.creat_context()


class Copy:
    """One copy by the bindings, which notes what it is told."""

    def __init__(self, context, **wanted):
        self.context, self.events, self.markers = context, [], []
        self.parameters = context.transfer_parameters()
        self.checksum = wanted.pop("checksum", None)
        if self.checksum:
            self.parameters.set_checksum(*self.checksum)
        for name, value in wanted.items():
            setattr(self.parameters, name, value)
        self.parameters.event_callback = lambda event: self.events.append((str(event.stage), event.description))
        self.parameters.monitor_callback = lambda *figures: self.markers.append(figures)

    def stages(self):
        return [stage for stage, _ in self.events]

    def run(self, source, destination):
        """0, or the errno; with the message in `message`."""
        import gfal2

        try:
            self.context.filecopy(self.parameters, source, destination)
        except gfal2.GError as error:
            self.message = error.message
            return error.code
        return 0
