# Programs that are told of sessions: once each, over failures and restarts; the two examples of the package; and when a
# `sluice run` runs.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import pytest
from harness.system import same_bytes, wait_until
from transfers import CANCELLED, CONFIGURATION, MIB, PARTIAL, begin, ended_session, finish, forget, make_file, wait_state

_EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "notify"
_LIMIT_S = 60


@pytest.fixture(scope="module")
def pair(make_pair):
    return make_pair()


def program(path, text):
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


@contextlib.contextmanager
def telling(node, *options):
    """`session events --exec`, until it is ended here, hard."""
    process = subprocess.Popen(node.command("session", "events", *options), stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_each_end_is_told_once_over_failures_and_restarts(pair, tmp_path):
    told, tried = tmp_path / "told", tmp_path / "tried"
    # The first try for each session fails.
    hook = program(tmp_path / "hook", f'[ "$SLUICE_TRY" -gt 1 ] || {{ echo x >> {tried}; exit 1; }}\n'
                                      f'echo "$SLUICE_SESSION $SLUICE_STATE" >> {told}\n')  # fmt: skip
    options = ("--exec", hook, "--state", tmp_path / "state", "--retry-wait", "1")

    def lines():
        return told.read_text().split("\n")[:-1] if told.exists() else []

    def noted():
        """A program that has done its work may still run, and one that has not ended is told again by a next start."""
        state = (tmp_path / "state").read_text()
        return all(f"told {line.split()[0]}" in state for line in expected)

    def send():
        source = make_file(pair.a, 1000)
        session = begin(pair.a, "send", source, "b:data/")
        ended_session(pair.a, session)
        forget(source)
        return f"{session} succeeded"

    send()  # before there was anybody to tell
    expected = []
    with telling(pair.a, *options):
        wait_until(lambda: (tmp_path / "state").exists() and (tmp_path / "state").stat().st_size > 0, _LIMIT_S,
                   "what had ended before is noted")  # fmt: skip
        expected += [send(), send()]
        wait_until(lambda: sorted(lines()) == sorted(expected) and noted(), _LIMIT_S, "both are told, at the second try")
    expected.append(send())  # while nobody listens
    with telling(pair.a, *options):
        wait_until(lambda: len(lines()) >= len(expected), _LIMIT_S, "the one that was missed is told")
        pair.a.control.kill()
        pair.a.start_control()
        expected.append(send())
        wait_until(lambda: len(lines()) >= len(expected), _LIMIT_S, "it goes on with a node that came back")
    assert sorted(lines()) == sorted(expected)
    assert len(tried.read_text().split()) == len(expected)


def test_a_first_start_that_is_stopped_at_once_has_been_and_tells_later_of_what_it_missed(pair, tmp_path):
    told, state = tmp_path / "told", tmp_path / "state"
    hook = program(tmp_path / "hook", f'echo "$SLUICE_SESSION" >> {told}\n')
    options = ("--exec", hook, "--state", state)

    def send():
        source = make_file(pair.a, 1000)
        session = begin(pair.a, "send", source, "b:data/")
        ended_session(pair.a, session)
        forget(source, pair.b.export() / source.name)
        return session

    def lines():
        return told.read_text().split() if told.exists() else []

    send()  # the past
    # It is blocked until the command takes signals, so it waits there for that moment, before which nothing is done.
    command = pair.a.command("session", "events", *options)
    process = subprocess.Popen(command, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]))
    process.terminate()
    assert process.wait(timeout=_LIMIT_S) == 0
    expected = [send(), send()]
    with telling(pair.a, *options):
        wait_until(lambda: len(lines()) >= len(expected), _LIMIT_S, "both are told that ended while it was down")
        expected.append(send())
        wait_until(lambda: len(lines()) >= len(expected), _LIMIT_S, "and one that ends now")
    assert sorted(lines()) == sorted(expected), "of the past nothing"


def test_a_state_that_is_removed_while_it_is_used_is_written_anew(pair, tmp_path):
    told, state = tmp_path / "told", tmp_path / "state"
    hook = program(tmp_path / "hook", f'echo "$SLUICE_SESSION" >> {told}\n')
    source = make_file(pair.a, 1000)

    def send(to):
        session = begin(pair.a, "send", source, f"b:data/{to}")
        ended_session(pair.a, session)
        return session

    def lines():
        return told.read_text().split() if told.exists() else []

    with telling(pair.a, "--exec", hook, "--state", state) as process:
        wait_until(lambda: state.exists() and state.stat().st_size > 0, _LIMIT_S, "what had ended before is noted")
        state.unlink()
        expected = [send("one")]
        wait_until(lambda: lines() == expected and state.exists(), _LIMIT_S, "it goes on")
        wait_until(lambda: f"told {expected[0]}" in state.read_text(), _LIMIT_S, "with all that it knows")
    expected.append(send("two"))
    with telling(pair.a, "--exec", hook, "--state", state) as process:
        wait_until(lambda: len(lines()) >= 2, _LIMIT_S, "the next start tells what ended in between")
        wait_until(lambda: f"told {expected[1]}" in state.read_text(), _LIMIT_S, "and has written it down")
        state.unlink()
        state.write_text("begun\n")
        send("three")
        assert process.wait(timeout=_LIMIT_S) == CONFIGURATION, "two are not mixed"
        assert "another file has taken its place" in process.stderr.read()
    assert lines()[:2] == expected
    forget(source, *(pair.b.export() / name for name in ("one", "two", "three")))


def test_a_transfer_tells_of_its_own_end(pair, tmp_path):
    told = tmp_path / "told"
    hook = program(tmp_path / "hook", f"cat > {told}\n")
    source = make_file(pair.a, 1000)
    plan = tmp_path / "plan.toml"
    plan.write_text(f"[[send]]\nsources = '{source}'\nto = 'b:data/x'\nnotify = '{hook}'\n")
    for command in (("send", source, "b:data/y", "--notify", hook), ("run", "-q", plan)):
        pair.a.must(*command)
        event = json.loads(told.read_text())
        assert (event["schema"], event["state"], event["bytes_done"]) == ("sluice.event.v1", "succeeded", 1000)
        told.unlink()
    forget(source, pair.b.export() / "x", pair.b.export() / "y")


@contextlib.contextmanager
def web_service(answers):
    """Answers each POST with the next of these statuses; yields what came: (headers, body)."""
    came, left = [], list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            came.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(left.pop(0))
            self.end_headers()

        def log_message(self, *_arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def signed_by(headers, body, secret):
    parts = dict(part.split("=") for part in headers["Sluice-Signature"].split(","))
    right = hmac.new(secret, parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(right, parts["v1"])


def sends_with(node, example, environment):
    source = make_file(node, 1000)
    command = node.command("send", "-q", source, "b:data/", "--notify", _EXAMPLES / example)
    result = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    forget(source)
    return result


def test_the_webhook_is_signed_and_comes_again_where_it_was_refused(pair):
    with web_service([503, 302, 200]) as (url, came):
        result = sends_with(pair.a, "notify_webhook.py", {"SLUICE_WEBHOOK_URL": url, "SLUICE_WEBHOOK_SECRET": "s3cret"})
    assert result.returncode == 0, result.stderr
    assert len(came) == 3, result.stderr
    for headers, body in came:
        assert signed_by(headers, body, b"s3cret") and not signed_by(headers, body + b"x", b"s3cret")
    assert json.loads(came[0][1])["state"] == "succeeded"
    assert came[0][0]["Sluice-Delivery"] == came[2][0]["Sluice-Delivery"] != ""


def test_the_mail_says_what_became_of_the_session(pair, tmp_path):
    sendmail = program(tmp_path / "sendmail", f"cat > {tmp_path}/mail\n")
    result = sends_with(pair.a, "notify_mail.py", {"SLUICE_SENDMAIL": str(sendmail), "SLUICE_MAIL_TO": "me@example.org"})
    assert (result.returncode, result.stderr) == (0, "")
    mail = (tmp_path / "mail").read_text()
    assert "Subject: Sluice: succeeded: session " in mail and "To: me@example.org" in mail
    assert "1000 of 1000 bytes" in mail


def clock(from_now_s):
    return time.strftime("%H:%M:%S", time.localtime(time.time() + from_now_s))


def test_a_run_is_paused_outside_its_window_and_begins_within_it(pair, tmp_path):
    source = make_file(pair.a, 16 * MIB)
    plan = tmp_path / "plan.toml"

    def run(window, to, rate):
        plan.write_text(f"window = '{window}'\n[[send]]\nsources = '{source}'\nto = 'b:data/{to}'\n"
                        f"rate = '{rate}'\nmode = 'fixed'\n")  # fmt: skip
        before = {one["id"] for one in pair.a.sessions()}
        process = pair.a.popen("run", "-q", plan)
        return process, lambda: [one["id"] for one in pair.a.sessions() if one["id"] not in before]

    process, begun = run(f"{clock(-3600)}-{clock(10)}", "x", "2M")
    session = wait_until(begun, _LIMIT_S, "it is begun")[0]
    paused = wait_state(pair.a, session, "paused")
    assert paused["error_code"] == 0
    pair.a.must("session", "cancel", session)
    ended = finish(process, 4 * _LIMIT_S)
    assert ended.returncode == CANCELLED, ended.stderr
    assert "outside the window" in ended.stderr

    opens = time.time() + 3
    process, begun = run(f"{clock(3)}-{clock(-3600)}", "y", "1G")
    session = wait_until(begun, _LIMIT_S, "it is begun")[0]
    assert ended_session(pair.a, session)["started_unix_ns"] >= (opens - 1) * 1e9
    assert finish(process).returncode == 0
    forget(source, pair.b.export() / "x", pair.b.export() / "y")


def test_a_run_comes_again_and_goes_on_with_what_an_error_held_up(pair, tmp_path):
    source = make_file(pair.a, 1000)
    plan = tmp_path / "plan.toml"
    plan.write_text(f"every = '2s'\n[[send]]\nsources = '{source}'\nto = 'b:data/z'\noverwrite = true\n")
    before = len(pair.a.sessions())
    process = pair.a.popen("run", "-q", plan)
    wait_until(lambda: len(pair.a.sessions()) >= before + 2, _LIMIT_S, "it has run twice")
    process.terminate()
    assert finish(process).returncode in (0, 12)
    forget(source, pair.b.export() / "z")


@pytest.fixture
def killed_runs(pair, tmp_path, monkeypatch):
    """Begins a run of a file and kills it hard when all its sessions are in one of these states."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run(plan, count, *states):
        before = {one["id"] for one in pair.a.sessions()}
        process = pair.a.popen("run", "-q", plan)
        new = wait_until(lambda: (ids := [one["id"] for one in pair.a.sessions() if one["id"] not in before])
                         and len(ids) == count and ids, _LIMIT_S, "it has begun them")  # fmt: skip
        for session in new:
            wait_state(pair.a, session, *states)
        process.kill()
        process.communicate()
        return new

    return run


def test_a_run_follows_what_it_had_begun_before_it_was_killed(pair, tmp_path, killed_runs):
    big, other = make_file(pair.a, 8 * MIB), make_file(pair.a, 1000)
    theirs = make_file(pair.b, 8 * MIB)
    tree = pair.a.export() / "run-tree"
    tree.mkdir()
    for number in range(3):
        (tree / str(number)).write_bytes(bytes(3 * MIB))
    slow = "rate = '8M'\nmode = 'fixed'\n"
    plan, one = tmp_path / "plan.toml", tmp_path / "one.toml"
    plan.write_text(f"[[send]]\nsources = ['{big}', '{other}']\nto = 'b:data/'\n{slow}"
                    f"[[get]]\nsources = 'b:{theirs}'\nto = '{pair.a.export()}/got'\n{slow}"
                    f"[[send]]\nsources = '{tree}'\nto = 'b:data/'\n{slow}")  # fmt: skip
    begun = killed_runs(plan, 3, "transferring")
    for session in begun:
        assert pair.a.json("session", "show", session)[1]["state"] == "transferring", "it goes on by itself"
    # Another file is not about these sessions.
    one.write_text(f"[[send]]\nsources = ['{big}', '{other}']\nto = 'b:data/'\n{slow}")
    assert pair.a.sluice("run", "-q", one).returncode == PARTIAL, "each file is being written"
    count = len(pair.a.sessions())
    status, reply, errors = pair.a.json("run", "-q", plan)
    assert status == 0, errors
    assert sorted(reply["followed"]) == sorted(begun)
    assert [one["state"] for one in reply["sessions"]] == ["succeeded"] * 3
    assert errors.count("which an earlier run began, goes on: it is followed to its end") == 3
    assert len(pair.a.sessions()) == count
    assert not list((tmp_path / "sluice").glob("run-*")), "nothing is left to remember"
    assert pair.a.sluice("run", "-q", plan).returncode != 0, "all of it is there"
    assert len(pair.a.sessions()) == count + 3, "what has ended is begun anew"
    shutil.rmtree(tree)
    shutil.rmtree(pair.b.export() / "run-tree")
    forget(big, other, theirs, pair.a.export() / "got", pair.b.export() / big.name, pair.b.export() / other.name)


def test_what_was_paused_by_hand_stays_so_and_what_the_window_paused_goes_on(pair, tmp_path, killed_runs):
    source = make_file(pair.a, 16 * MIB)
    plan = tmp_path / "plan.toml"

    def write(window, to):
        plan.write_text(f"{window}[[send]]\nsources = '{source}'\nto = 'b:data/{to}'\nrate = '10M'\nmode = 'fixed'\n")

    def ends_well(session):
        pair.a.must("session", "limit", session, "--rate", "1G")
        assert finish(process, 4 * _LIMIT_S).returncode == 0
        assert ended_session(pair.a, session)["state"] == "succeeded"

    write("", "byhand")
    (session,) = killed_runs(plan, 1, "transferring")
    pair.a.must("session", "pause", session)
    wait_state(pair.a, session, "paused")
    process = pair.a.popen("run", "-q", plan)
    assert f"session {session[:8]}, which an earlier run began, is paused: 'sluice session continue" in process.stderr.readline()
    assert pair.a.json("session", "show", session)[1]["state"] == "paused"
    pair.a.must("session", "continue", session)
    wait_state(pair.a, session, "transferring", "succeeded")
    ends_well(session)

    write(f"window = '{clock(-3600)}-{clock(8)}'\n", "bywindow")
    (session,) = killed_runs(plan, 1, "paused")
    write("", "bywindow")
    process = pair.a.popen("run", "-q", plan)
    assert "was paused outside the window, and is continued" in process.stderr.readline()
    wait_state(pair.a, session, "transferring", "succeeded")
    ends_well(session)
    forget(source, pair.b.export() / "byhand", pair.b.export() / "bywindow")


def test_a_sync_that_was_killed_waits_for_its_own_session_and_compares_anew(pair, tmp_path, killed_runs):
    tree, there = pair.a.export() / "sync-tree", pair.b.export() / "sync-tree"
    tree.mkdir()
    (tree / "big").write_bytes(bytes(4 * MIB) + b"x")
    random = make_file(pair.a, 8 * MIB, name="sync-tree/random")
    plan = tmp_path / "plan.toml"
    plan.write_text(f"[[send]]\nsources = '{tree}/'\nto = 'b:data/sync-tree/'\nsync = true\nmkdir = true\nrate = '20M'\nmode = 'fixed'\n")
    (session,) = killed_runs(plan, 1, "transferring")
    status, reply, errors = pair.a.json("run", "-q", plan)
    assert status == 0, errors
    assert reply["followed"] == [session]
    assert same_bytes(random, there / "random")
    shutil.rmtree(tree)
    shutil.rmtree(there)
