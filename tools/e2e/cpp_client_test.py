# The C++ client (tools/cpp): its examples, built against the installed package, move files between real nodes, and hear of
# errors what the command says of them.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
from harness import find_binaries, wait_until
from harness.system import same_bytes
from transfers import CANCELLED, CONFIGURATION, DAEMON, MIB, SOURCE, UNTRUSTED, USAGE, forget, make_file, unharmed

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "cpp/examples"


def _run(*arguments):
    return subprocess.run([str(each) for each in arguments], capture_output=True, text=True, timeout=120)


def _must(*arguments):
    result = _run(*arguments)
    assert result.returncode == 0, f"{arguments}: {result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Folder of the examples, built by somebody who has the installed package and nothing else."""
    build = find_binaries().parent
    cache = build / "CMakeCache.txt"
    if not cache.exists() or shutil.which("cmake") is None:
        pytest.skip("the programs are not where they were built")
    if "SLUICE_SANITIZE:STRING=\n" not in cache.read_text():
        pytest.skip("a library with a sanitizer in it needs a program with the same")
    prefix, out = tmp_path_factory.mktemp("prefix"), tmp_path_factory.mktemp("examples")
    _must("cmake", "--install", build, "--component", "client", "--prefix", prefix)
    _must("cmake", "-S", EXAMPLES, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    _must("cmake", "--build", out)
    return out


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair(bytes_needed=1 << 30)


def test_sends_and_gets_with_progress(programs, pair):
    source = make_file(pair.a, 3 * MIB)
    told = _must(programs / "copy", pair.a.directory, source, "b:data/new/").splitlines()
    arrived = pair.b.export() / "new" / source.name
    assert same_bytes(source, arrived)
    assert told[-2].startswith(f"succeeded {3 * MIB} of {3 * MIB} bytes"), told
    status, session, error = pair.a.json("session", "show", told[0].split()[1])
    assert status == 0, error
    assert told[-1] == f"{session['files'][0]['digest_destination']} {arrived}"
    back = pair.a.export() / "back"
    _must(programs / "copy", pair.a.directory, f"b:data/new/{source.name}", back)
    assert same_bytes(source, back)
    forget(source, back)
    shutil.rmtree(arrived.parent)


def test_sessions_are_listed_limited_paused_waited_for_and_cancelled(programs, pair):
    with unharmed(pair):
        session = pair.a.must("send", "memory:1000000000000", "b:null:", "--rate", "1G", "--detach").stdout.split()[-1]
        one = [programs / "sessions", pair.a.directory, session]
        assert session in _must(*one[:2])
        assert _run(*one, "wait", "0.2").returncode == 124
        assert " 500000000" in _must(*one, "limit", "500000000")
        wait_until(lambda: pair.a.json("session", "show", session)[1]["bytes_done"] > 0, 60, "the first bytes")
        _must(*one, "pause")
        wait_until(lambda: " paused " in _must(*one, "show"), 30, "the session pauses")
        _must(*one, "continue")
        _must(*one, "cancel")
        ended = _run(*one, "wait", "60")
        assert (ended.returncode, "cancelled" in ended.stderr) == (CANCELLED, True), ended.stderr


def test_a_session_is_exported_and_withdrawn(programs, pair, tmp_path):
    third = tmp_path / "third"
    subprocess.run([find_binaries() / "sluice", "node", "init", third, "--name", "third"], check=True, capture_output=True)
    pair.a.must("node", "trust", "third", third / "identity/cert.pem", "--address", "127.0.0.1:9")
    with unharmed(pair):
        session = pair.a.must("send", "memory:1000000000000", "b:null:", "--rate", "1G", "--detach").stdout.split()[-1]
        one = [programs / "sessions", pair.a.directory, session]
        wait_until(lambda: pair.a.json("session", "show", session)[1]["bytes_done"], 60, "data move")
        bundle = subprocess.run([*one, "export", "third"], capture_output=True, timeout=120, check=True).stdout
        assert "failed" in _must(*one, "show")
        taken = subprocess.run([*one[:2], "import"], input=bundle, capture_output=True, timeout=120)
        assert taken.returncode == UNTRUSTED and b"this node itself has exported the session" in taken.stderr, taken.stderr
        assert " paused " in _must(*one, "withdraw")
        _must(*one, "cancel")


def test_errors_are_those_of_the_command(programs, pair, tmp_path):
    for code, name, result in (
        (SOURCE, "source_unreadable", _run(programs / "copy", pair.a.directory, pair.a.export() / "no-such", "b:data/")),
        (USAGE, "usage", _run(programs / "sessions", pair.a.directory, "nonsense", "show")),
        (DAEMON, "daemon_not_running", _run(programs / "sessions", tmp_path)),
        (CONFIGURATION, "configuration", _run(programs / "sessions", tmp_path / "no-such")),
        (CONFIGURATION, "configuration", _run(programs / "sessions", tmp_path / ("x" * 100))),
    ):
        assert result.returncode == code, result.stderr
        assert result.stderr.rstrip().endswith(f"({name})"), result.stderr


def test_a_control_that_stands_still_is_an_error_that_names_it(programs, pair):
    session = pair.a.must("send", "memory:1000000000000", "b:null:", "--rate", "1G", "--detach").stdout.split()[-1]
    shows = (programs / "sessions", pair.a.directory, session, "show")
    wait_until(lambda: " transferring " in _must(*shows), 30, "data moves")
    os.kill(pair.a.control.pid, signal.SIGSTOP)
    try:
        waits = [subprocess.Popen([str(word) for word in (programs / "sessions", pair.a.directory, *words)],
                                  stderr=subprocess.PIPE, text=True)
                 for words in ((), (session, "wait", "300"))]  # fmt: skip
        ends = [process.communicate(timeout=120)[1] for process in waits]
    finally:
        os.kill(pair.a.control.pid, signal.SIGCONT)
    pair.a.must("session", "cancel", session)
    for process, error in zip(waits, ends):
        assert process.returncode == DAEMON, error
        assert f"on {pair.a.directory}/run/control.sock stands still" in error, error
