# What it costs that a tree is a user's: the same small files sent by an operator, as root at both nodes, and by a user of the one host
# whom a map makes a user of the other; sluice-users reads and makes those. And the same the other way, fetched.
#
# files_per_s counts the wall of the whole client. A ratio is taken within a round, of `user` over `root` of the same place and direction; the
# summary has the median over the rounds and the extremes.
# SPDX-License-Identifier: Apache-2.0
import os
import pwd
import shutil

from harness.system import is_root
from harness.users import UsersHelper

from ..errors import MISSING, LabError
from ..figures import by_round, spread
from ..machine import file_system
from ..peers import forests
from . import shapes

HELP = "20,000 small files of a mapped user beside root's, on tmpfs and on disk"
REAL = False
PACKAGES = ()
WHO, PLACES, WAYS = ("root", "user"), ("tmpfs", "disk"), ("send", "get")
_GROUP, _USER, _THERE = "nogroup", "nobody", "_apt"  # of Debian's own
_MARGIN_MIB = 256


def run(bench):
    if not is_root():
        raise LabError("users: being other users needs root", MISSING)
    forest = forests.small(20_000)
    settings = [{"storage": place, "way": way, "who": who, "files": len(forest.files)} for place in PLACES for way in WAYS for who in WHO]
    control = {"users_group": _GROUP, "users_uid_min": min(pwd.getpwnam(name).pw_uid for name in (_USER, _THERE))}
    size = 3 * forest.on_disk_bytes()
    with bench.nodes(pinned=False, bytes_needed=2 * size + (_MARGIN_MIB << 20), settings={"control": control}) as nodes:
        mounted = nodes.pair.mount_tmpfs("memory", (2 * size >> 20) + _MARGIN_MIB)
        nodes.pair.base.chmod(0o711)
        users_map = nodes.pair.base / "users.map"
        users_map.write_text(f"{_USER}@a {_THERE}\n")
        users_map.chmod(0o644)
        nodes.b.settings["control"]["users_map_file"] = str(users_map)
        for node in nodes.pair.nodes:
            node.add_export("tmpfs", mounted / node.name)
            node.write_configuration()
            for export in ("tmpfs", "data"):
                node.export(export).chmod(0o1777)
                for who, name in (("root", "root"), ("user", _USER if node is nodes.a else _THERE)):
                    _plant(forest, node.export(export) / f"of-{who}", name)
        nodes.start()
        helpers = [_start_helper(node) for node in nodes.pair.nodes]
        try:
            bench.describe(nodes)
            bench.described["file_system"] = file_system(nodes.pair.base)
            samples = bench.interleave(settings, lambda setting: _measure(nodes, setting))
        finally:
            for helper in helpers:
                helper.stop()
    rows = bench.must_have_rows(bench.rows(settings, samples))
    return {"rows": rows, "summary": summary(settings, rows, samples)}


def _plant(forest, root, owner):
    forest.make(root)
    entry = pwd.getpwnam(owner)
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            os.chown(os.path.join(directory, name), entry.pw_uid, entry.pw_gid)
    os.chown(root, entry.pw_uid, entry.pw_gid)
    root.chmod(0o700)


def _start_helper(node):
    helper = UsersHelper(node, node.directory.parent / f"{node.name}-users.log")
    helper.start()
    return helper


def _measure(nodes, setting):
    export = "tmpfs" if setting["storage"] == "tmpfs" else "data"
    sends = setting["way"] == "send"
    here, there = (nodes.a, nodes.b) if sends else (nodes.b, nodes.a)
    source, target = here.export(export) / f"of-{setting['who']}", there.export(export) / "arrived"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    if setting["who"] == "user":
        os.chown(target, pwd.getpwnam(_THERE if sends else _USER).pw_uid, -1)
    os.sync()
    entry = pwd.getpwnam(_USER)
    prefix = [] if setting["who"] == "root" else ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", "--"]
    words = ["send", f"{source}/", f"b:{target}/"] if sends else ["get", f"b:{source}/", f"{target}/"]
    before, nodes.client_prefix = nodes.client_prefix, prefix
    try:
        out = nodes.transfer_words(words, "--rate", shapes.RATE, by_wall=True)
    finally:
        nodes.client_prefix = before
    arrived = sum(len(files) for _directory, _inner, files in os.walk(target))
    if arrived != setting["files"]:
        raise LabError(f"users: {arrived} of {setting['files']} files arrived")
    return {**out, "files_per_s": setting["files"] / out["wall_s"]}


def summary(settings, rows, samples):
    at = {(setting["storage"], setting["way"], setting["who"]): number for number, setting in enumerate(settings)}
    out = {}
    for place in PLACES:
        for way in WAYS:
            user, root = at[place, way, "user"], at[place, way, "root"]
            for number, who in ((user, "user"), (root, "root")):
                out[f"{place}_{way}_{who}_files_per_s"] = rows[number]["files_per_s"]
            out.update(spread(f"{place}_{way}_ratio", by_round(samples[user], samples[root], "files_per_s")))
    return out


def plots(result):
    def draw(axes):
        rows = [{**row, "setting": f"{row['storage']} {row['way']} {row['who']}"} for row in shapes.good(result["rows"])]
        shapes.bars(axes, rows, "setting", "files_per_s", "files/s")

    return [("rate", draw)]
