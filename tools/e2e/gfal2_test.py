# gfal2's own commands and its Python bindings over three nodes: files of home, of alpha and of beta, which home asks and orders.
# SPDX-License-Identifier: Apache-2.0
import errno
import threading
import zlib

import pytest
from gfals import Copy, Gfal, gfal_missing
from harness import Group, group_missing, wait_until
from harness.system import random_file, same_bytes
from peer.wire import CRC32C
from transfers import MIB, SANITIZED, as_before

_reason = group_missing() or gfal_missing() or ("gfal2 has no sanitizer" if SANITIZED else None)
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


@pytest.fixture(scope="module")
def group():
    of_all = {"port": {"rate": "80M"}}
    with Group(["home", "alpha", "beta"], settings=of_all, bytes_needed=1 << 30) as nodes:
        for name in ("alpha", "beta"):
            nodes[name].add_export("data", nodes[name].export(), "rwm")
            nodes[name].add_export("shown", nodes.base / f"{name}-shown", "r")
            nodes[name].write_configuration()
        nodes.start()
        yield nodes


@pytest.fixture(scope="module")
def gfal(group, tmp_path_factory):
    return Gfal(tmp_path_factory.mktemp("gfal"), group["home"])


@pytest.fixture(autouse=True)
def clean(group):
    yield
    as_before(group)


def here(group, name, size, node="home"):
    return random_file(group[node].export() / name, size, seed=size + 1)


def chunks_of(node):
    return {name: value for name, value in node.counters().items() if "chunks" in name}


def code_of(call, *words):
    import gfal2

    try:
        call(*words)
    except gfal2.GError as error:
        return error.code, error.message
    return 0, ""


def test_the_commands_do_at_another_node_what_they_do_elsewhere(group, gfal):
    source, there = here(group, "file", 3 * MIB + 1), group["beta"].export()
    gfal.must("mkdir", "-p", "sluice://beta/data/a/b")
    gfal.must("copy", f"file://{source}", "sluice://beta/data/a/b/file")
    assert same_bytes(source, there / "a/b/file")
    assert str(3 * MIB + 1) in gfal.must("ls", "-l", "sluice://beta/data/a/b/")
    assert "regular file" in gfal.must("stat", "sluice://beta/data/a/b/file")
    assert "directory" in gfal.must("stat", "sluice://beta/data/a")
    bytes_of = source.read_bytes()
    assert gfal.must("sum", "sluice://beta/data/a/b/file", "ADLER32").split()[1] == f"{zlib.adler32(bytes_of):08x}"
    gfal.must("rename", "sluice://beta/data/a/b/file", "sluice://beta/data/a/other")
    gfal.must("copy", "sluice://beta/data/a/other", f"file://{source.parent}/back")
    assert same_bytes(source, source.parent / "back")
    refused = gfal.run("rm", "sluice://beta/data/a")
    assert (refused.returncode, (there / "a/other").exists()) == (errno.EISDIR, True)
    gfal.must("rm", "sluice://beta/data/a/other")
    assert not (there / "a/other").exists()
    (there / "a/%41").write_text("of this name")
    (there / "a/A").write_text("of the other")
    gfal.must("rm", "-r", "sluice://beta/data/a")
    assert not (there / "a").exists()


def test_a_third_node_orders_and_sums_are_compared(group, gfal):
    import gfal2

    source, before = here(group, "file", 2 * MIB, "alpha"), chunks_of(group["home"])
    sums = {"ADLER32": f"{zlib.adler32(source.read_bytes()):08x}", "CRC32C": f"{CRC32C.of(source.read_bytes()):08x}"}
    for kind, value in sums.items():
        copy = Copy(gfal.context(), checksum=(gfal2.checksum_mode.both, kind, value), overwrite=True, create_parent=True)
        assert copy.run("sluice://alpha/data/file", "sluice://beta/data/new/file") == 0, copy.message
        assert same_bytes(source, group["beta"].export() / "new/file")
    stages = copy.stages()
    order = ["PREPARE:ENTER", "CHECKSUM:ENTER", "CHECKSUM:EXIT", "PREPARE:EXIT", "TRANSFER:ENTER", "TRANSFER:TYPE",
             "TRANSFER:EXIT", "CLOSE:ENTER", "CLOSE:EXIT", "CHECKSUM:ENTER", "CHECKSUM:EXIT"]  # fmt: skip
    assert [stage for stage in stages if "OVERWRITE" not in stage and "LIST" not in stage] == order, copy.events
    assert ("TRANSFER:TYPE", "3rd push") in copy.events
    assert copy.markers[-1][4] == 2 * MIB, copy.markers
    assert chunks_of(group["home"]) == before, "no byte comes to home"
    wrong = Copy(gfal.context(), checksum=(gfal2.checksum_mode.source, "ADLER32", "12345678"))
    assert wrong.run("sluice://alpha/data/file", "sluice://beta/data/x") == errno.EIO
    assert "CHECKSUM MISMATCH" in wrong.message and not (group["beta"].export() / "x").exists()
    late = Copy(gfal.context(), checksum=(gfal2.checksum_mode.target, "ADLER32", "12345678"))
    assert late.run("sluice://alpha/data/file", "sluice://beta/data/x") == errno.EIO
    assert "CHECKSUM MISMATCH" in late.message and "it stays there" in late.message
    unknown = Copy(gfal.context(), checksum=(gfal2.checksum_mode.both, "MD5", ""))
    assert unknown.run("sluice://alpha/data/file", "sluice://beta/data/y") == errno.ENOSYS


def test_what_stands_there_stays_unless_it_is_to_be_replaced(group, gfal):
    source, target = here(group, "file", MIB), group["beta"].export() / "file"
    target.write_text("before")
    words = (f"file://{source}", "sluice://beta/data/file")
    for wanted in ({}, {"strict_copy": True}, {"strict_copy": True, "overwrite": True}):
        copy = Copy(gfal.context(), **wanted)
        assert copy.run(*words) == errno.EEXIST, copy.message
        assert target.read_text() == "before"
    copy = Copy(gfal.context(), overwrite=True, dst_spacetoken="ignored")
    assert copy.run(*words) == 0, copy.message
    assert same_bytes(source, target) and any("OVERWRITE" in stage for stage in copy.stages())
    assert Copy(gfal.context()).run(words[0], "sluice://beta/data/no/where") == errno.ENOENT
    assert Copy(gfal.context(), strict_copy=True, create_parent=True).run(words[0], "sluice://beta/data/no/where") == errno.ENOENT
    assert Copy(gfal.context(), create_parent=True).run(words[0], "sluice://beta/data/no/where") == 0
    assert same_bytes(source, group["beta"].export() / "no/where")
    assert Copy(gfal.context(), overwrite=True).run(words[0], "sluice://beta/data/no") == errno.EISDIR


def held(group, copy, *words):
    """A copy in a thread of its own, once some of its bytes have come. Its session is slow from then on."""
    result = []
    thread = threading.Thread(target=lambda: result.append(copy.run(*words)))
    thread.start()
    wait_until(lambda: any(marker[4] > 0 for marker in copy.markers), 60, "data have come")
    session = group["home"].sessions()[-1]["id"]
    group["home"].must("session", "limit", session, "--rate", "2M")
    return thread, result, session


def test_who_cancels_or_has_no_more_time_leaves_nothing_behind(group, gfal):
    here(group, "large", 40 * MIB, "alpha")
    words = ("sluice://alpha/data/large", "sluice://beta/data/large")
    copy = Copy(gfal.context())
    thread, result, session = held(group, copy, *words)
    copy.context.cancel()
    thread.join(120)
    assert result == [errno.ECANCELED], copy.message
    assert group["home"].json("session", "show", session)[1]["state"] == "cancelled"
    assert "CANCEL:ENTER" in copy.stages() and "CANCEL:EXIT" in copy.stages()
    # FTS gives a copy so many seconds.
    copy = Copy(gfal.context(), timeout=3)
    thread, result, session = held(group, copy, *words)
    thread.join(120)
    assert result == [errno.ETIMEDOUT] and "longer than 3 s" in copy.message
    wait_until(lambda: not list(group["beta"].export().iterdir()), 60, "what had arrived is gone")
    assert len(copy.markers) > 1 and all(marker[2] >= 0 for marker in copy.markers)


def test_a_node_that_is_away_for_a_moment_costs_no_copy(group, gfal):
    source = here(group, "large", 40 * MIB, "alpha")
    copy = Copy(gfal.context())
    thread, result, session = held(group, copy, "sluice://alpha/data/large", "sluice://beta/data/large")
    group["home"].control.kill()
    group["home"].start_control()
    group["home"].sluice("session", "limit", session, "--rate", "80M")  # it may have ended while home was away
    thread.join(200)
    assert result == [0], copy.message
    assert same_bytes(source, group["beta"].export() / "large")


def test_names_of_all_kinds_arrive_as_they_are(group, gfal):
    context, there = gfal.context(), group["beta"].export()
    names = {"a b": "a b", "caf\u00e9": "caf\u00e9", "100%25": "100%", "a%3Fb%23": "a?b#", "*[x]?"[:4]: "*[x]", "$(y);&'\"": "$(y);&'\"",
             "..x": "..x", "%7Etilde": "~tilde", "-r": "-r", "x" * 255: "x" * 255}  # fmt: skip
    for url_name, name in names.items():
        source = here(group, "small", 1000 + len(name))
        copy = Copy(context, overwrite=True)
        assert copy.run(f"file://{source}", f"sluice://beta/data/{url_name}") == 0, (name, copy.message)
        assert same_bytes(source, there / name), name
        assert context.stat(f"sluice://beta/data/{url_name}").st_size == 1000 + len(name)
    (there / b"\xff.bin".decode(errors="surrogateescape")).write_bytes(b"12345")
    listed = context.listdir("sluice://beta/data")
    assert "100%25" in listed and "a b" in listed and "%FF.bin" in listed
    for name in listed:  # each leads back to its file
        assert context.stat(f"sluice://beta/data/{name}").st_size in (5, *(1000 + len(each) for each in names.values()))
    directory = context.opendir("sluice://beta/data")
    sizes = {}
    while True:
        entry, info = directory.readpp()
        if entry is None or not entry.d_name:
            break
        sizes[entry.d_name] = info.st_size
    assert sizes["%FF.bin"] == 5 and len(sizes) == len(names) + 1


def test_what_is_wrong_has_its_errno_and_a_sentence(group, gfal):
    context, there = gfal.context(), group["beta"].export()
    (there / "file").write_text("x")
    (there / "full").mkdir()
    (there / "full/x").write_text("x")
    (there / "link").symlink_to("file")
    for call, url, expected, words in [
        (context.stat, "sluice://beta/data/none", errno.ENOENT, "does not exist"),
        (context.stat, "sluice://beta/nothing/x", errno.EACCES, "export"),
        (context.stat, "sluice://gamma/data/x", errno.EHOSTUNREACH, "not known"),
        (context.stat, "sluice://beta/data/../x", errno.EACCES, "elsewhere"),
        (context.stat, "sluice://beta/data/%2e%2e/x", errno.EACCES, "elsewhere"),
        (context.stat, "sluice://beta/data/a%00b", errno.EINVAL, "NUL"),
        (context.stat, "sluice://beta/data/a%2Fb", errno.EINVAL, "slash"),
        (context.stat, "sluice://beta/data/%zz", errno.EINVAL, "hexadecimal"),
        (context.stat, "sluice://beta/data/" + "x" * 256, errno.ENAMETOOLONG, "255"),
        (context.stat, "sluice://beta/data" + 30 * ("/" + "x" * 200), errno.ENAMETOOLONG, "4096"),
        (context.stat, "sluice://beta/data/link/x", errno.EACCES, "symbolic link"),
        (context.stat, "sluice://beta/data/file/", errno.ENOTDIR, "directory"),
        (context.listdir, "sluice://beta/data/file", errno.ENOTDIR, "directory"),
        (context.rmdir, "sluice://beta/data/full", errno.ENOTEMPTY, "not empty"),
        (context.rmdir, "sluice://beta/data/file", errno.ENOTDIR, "directory"),
        (context.unlink, "sluice://beta/data/full", errno.EISDIR, "directory"),
        (context.unlink, "sluice://beta/shown/x", errno.EACCES, "manage"),
        (context.readlink, "sluice://beta/data/file", errno.EINVAL, "link"),
    ]:
        code, message = code_of(call, url)
        assert code == expected and words in message, (url, code, message)
    assert context.readlink("sluice://beta/data/link") == "file"
    assert (there / "full/x").exists()
    for call, words, expected in [
        (context.mkdir, ("sluice://beta/data/full", 0o755), errno.EEXIST),
        (context.mkdir, ("sluice://beta/data/no/no", 0o755), errno.ENOENT),
        (context.rename, ("sluice://beta/data/file", "sluice://alpha/data/file"), errno.EXDEV),
        (context.checksum, ("sluice://beta/data/file", "MD5"), errno.ENOSYS),
        (context.checksum, ("sluice://beta/data/full", "ADLER32"), errno.EISDIR),
        (context.checksum, ("sluice://beta/data/file", "ADLER32", 1, 1), errno.ENOSYS),
        (context.chmod, ("sluice://beta/data/file", 0o777), errno.ENOSYS),
        (context.open, ("sluice://beta/data/file", "r"), errno.ENOSYS),
    ]:
        code, message = code_of(call, *words)
        assert code == expected and message, (words, code, message)
    file = here(group, "file", 1000)
    for words, expected in [
        (("sluice://beta/data/file", "sluice://beta/data/copy"), errno.EOPNOTSUPP),
        (("sluice://beta/data/full", "sluice://alpha/data/full"), errno.EISDIR),
        (("sluice://beta/data/none", "sluice://alpha/data/none"), errno.ENOENT),
        (("file:///etc/hostname", "sluice://beta/data/x"), errno.EACCES),
        ((f"file://{file}", "sluice://beta/shown/x"), errno.EACCES),
        ((f"file://{file}", "sluice://beta/null:"), errno.EINVAL),
        (("sluice://beta/memory:1G/x", f"file://{file}2"), errno.EINVAL),
        ((f"file://{file}", "sluice://gamma/data/x"), errno.EHOSTUNREACH),
    ]:
        copy = Copy(context)
        assert copy.run(*words) == expected and copy.message, (words, copy.message)
    assert sorted(path.name for path in there.iterdir()) == ["file", "full", "link"]
    away = gfal.run("stat", "sluice://beta/data/file", SLUICE_NODE="/nowhere")
    assert away.returncode == errno.ECONNREFUSED and "not running" in away.stderr


def test_the_exports_of_a_node_and_a_node_by_its_address(group, gfal):
    context = gfal.context()
    assert sorted(context.listdir("sluice://beta/")) == ["data", "shown"]
    here(group, "file", 10, "beta")
    assert context.stat(f"sluice://{group['beta'].address}/data/file").st_size == 10
    here(group, "mine", 11)
    assert context.stat("sluice://home/data/mine").st_size == 11
    assert Copy(context).run("sluice://home/data/mine", "sluice://beta/data/mine") == 0
    assert Copy(context).run("sluice://beta/data/file", "sluice://home/data/file") == 0
    assert (group["home"].export() / "file").stat().st_size == 10


_FORKS = """
import errno, os, sys
import grpc, google.protobuf  # the plug-in's own do not clash with these
import gfal2
context = gfal2.creat_context()
context.stat("sluice://beta/data/file")
def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            code = work()
        except gfal2.GError as error:
            code = error.code
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
between = child(lambda: context.stat("sluice://beta/data/file").st_size)
directory = context.opendir("sluice://beta/data")
inside = child(lambda: context.stat("sluice://beta/data/file").st_size)
assert directory.read().d_name == "file"
del directory
after = child(lambda: context.stat("sluice://beta/data/file").st_size)
print(between, inside == errno.ENOTSUP, after, len(os.listdir("/proc/self/task")))
"""


MANY_AT_ONCE = """
import sys, threading, gfal2
failed = []
def ask(context):
    try:
        context.checksum(sys.argv[1], "ADLER32")
        context.stat(sys.argv[1])
        context.listdir(sys.argv[2])
    except gfal2.GError as error:
        failed.append((error.code, error.message))
threads = [threading.Thread(target=ask, args=(gfal2.creat_context(),)) for _ in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed)
"""


def test_more_questions_than_a_node_answers_at_a_time_wait_their_turn(group, gfal):
    here(group, "asked for", 64 * MIB, node="beta")
    ran = gfal.python(MANY_AT_ONCE, "sluice://beta/data/asked%20for", "sluice://beta/data")
    assert (ran.returncode, ran.stdout.strip()) == (0, "[]"), ran.stderr


def test_a_process_may_fork_between_two_calls(group, gfal):
    here(group, "file", 42, "beta")
    ran = gfal.python(_FORKS)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["42", "True", "42", "1"], ran.stdout + ran.stderr
