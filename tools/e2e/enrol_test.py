# Nodes that a site's authority enrols by tokens, without one pinned file; and those that live as long as a command.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile

import pytest
from harness import wait_until
from harness.group import group_missing
from harness.slurm import Slurm, slurm_missing
from harness.system import run, same_bytes
from sites import DATA_ADDRESSES, DOMAIN, Site, own_network

_reason = group_missing()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))
_MIB = 1 << 20
_USAGE, _DAEMON, _UNTRUSTED, _UNREACHABLE = 2, 4, 5, 6
_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all",
           "--no-new-privs"]  # fmt: skip


@pytest.fixture(scope="module")
def site():
    with own_network(DATA_ADDRESSES):
        one = Site()
        try:
            one.start()
            one.write_addresses()
            yield one
        finally:
            one.stop()


@pytest.fixture(scope="module")
def nodes(site):
    """Two that know each other by the authority and the file of addresses alone."""
    made = [site.node(name, site.token("--name", name)[0]) for name in ("alpha", "beta")]
    site.write_addresses()
    for node in made:
        node.start()
    return made


def refused(result, status, *words):
    assert result.returncode == status, result.stderr
    for each in words:
        assert each in result.stderr, result.stderr


def test_enrolled_nodes_move_files_among_a_thousand(site, nodes):
    alpha, beta = nodes
    source = alpha.export() / "file"
    source.write_bytes(os.urandom(3 * _MIB))
    alpha.must("send", source, "beta:data/")
    assert same_bytes(source, beta.export() / "file")
    shown = alpha.json("node", "show")[1]
    assert shown["peers"] == [] and shown["addresses"] == 1002
    assert not list((alpha.directory / "trusted").glob("*.pem"))
    assert (alpha.directory / "identity/key.pem").stat().st_mode & 0o077 == 0
    names = {one["name"] for one in site.audit() if one["event"] == "enrolled"}
    assert {"alpha", "beta"} <= names


def test_an_address_that_changes_is_read_anew(site, nodes):
    alpha, beta = nodes
    right = site.addresses["beta"]
    site.addresses["beta"] = "127.0.0.1:9"
    site.write_addresses()
    refused(alpha.sluice("ls", "beta:"), _UNREACHABLE, "127.0.0.1:9")
    site.addresses["beta"] = right
    site.write_addresses()
    alpha.must("ls", "beta:")
    assert beta.control.running()


def test_a_node_that_is_there_is_enrolled_with_the_key_that_it_has(site, nodes):
    """By a certificate of its own it is a stranger, by the authority's it is not; a second time renews it."""
    alpha = nodes[0]
    directory = site.base / "old"
    run([site.binaries / "sluice", "node", "init", directory, "--name", "old"])
    before = (directory / "identity/key.pem").read_bytes()
    command = [site.binaries / "sluice", "--json", "--node", directory, "node", "enrol"]
    refused(subprocess.run([*command, site.token("--name", "older")[0]], capture_output=True, text=True, check=False),
            _USAGE, "is for older")  # fmt: skip
    for restart in (True, False):
        made = json.loads(run([*command, site.token("--name", "old")[0]]))
        assert made["restart"] is restart and made["set_by_hand"] == ""
    assert (directory / "identity/key.pem").read_bytes() == before
    assert alpha.json("node", "show")[1]["peers"] == []
    assert f'ca_domain = "{DOMAIN}"\n' in (directory / "node.toml").read_text()


def test_a_token_is_good_once_also_after_a_restart_of_the_server(site):
    token, token_id = site.token()
    assert site.enrol("first", token)[1].returncode == 0
    site.server.stop()
    site.start()
    directory, second = site.enrol("second", token)
    refused(second, _UNTRUSTED, "used already, by first")
    assert not directory.exists()
    assert site.tokens()[token_id]["state"] == "used"
    assert site.audit()[-1]["event"] == "refused"


def test_a_token_that_is_revoked_or_for_another_name_enrols_nobody(site):
    token, token_id = site.token("--name", "job-*", "--uses", "2")
    refused(site.enrol("third", token)[1], _UNTRUSTED, "for the name job-*")
    site.must("revoke", site.directory, token_id)
    refused(site.enrol("job-1", token)[1], _UNTRUSTED, "was revoked")
    refused(site.enrol("job-1", token[:-1])[1], _USAGE, "cut off or mistyped")


def test_a_rogue_server_hears_nothing_of_the_token(site, tmp_path):
    """It has a key of its own, and takes whatever comes: the newcomer leaves in the handshake."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=Sluice authority", "-keyout",
                    key, "-out", certificate], check=True, capture_output=True)  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [site.binaries / "sluice", "node", "init", site.base / "lured", "--name", "lured", "--enrol",
                   site.token()[0], "--at", f"127.0.0.1:{listener.getsockname()[1]}"]  # fmt: skip
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        connection = listener.accept()[0]
        connection.settimeout(60)
        heard = b""
        try:
            with context.wrap_socket(connection, server_side=True) as tls:
                heard = tls.recv(1)
        except OSError:
            pass
        _, error = process.communicate(timeout=120)
    assert process.returncode == _UNTRUSTED and "does not hold the authority of this token" in error
    assert heard == b""


def test_what_strangers_say_is_refused_and_it_serves_on(site):
    host, port = site.at.split(":")
    for said in (b"", b"\x16\x03\x01" + bytes(300), os.urandom(4096)):
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(said)
    assert site.enrol("after", site.token()[0])[1].returncode == 0


# ---- ephemeral ones ------------------------------------------------------------------------------


def ephemeral(site, parent, *words):
    return [site.binaries / "sluice", "node", "run", "--ephemeral", "--directory", parent, "--address", f"{DATA_ADDRESSES[2]}/24",
            "--memory-mib", "64", "--addresses-file", site.addresses_file, *words]  # fmt: skip


@pytest.fixture
def parent():
    """Where nobody may write."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as name:
        os.chmod(name, 0o1777)
        yield pathlib.Path(name)


def test_a_node_for_one_command_without_root(site, nodes, parent):
    beta = nodes[1]
    given = parent / "given"
    given.mkdir(mode=0o777)
    (given / "in").write_bytes(os.urandom(2 * _MIB))
    os.chmod(given, 0o777)
    token = parent / "token"
    token.write_text(site.token("--name", "job-7")[0])
    script = f'"$0" --version && "$0" send {given}/in beta:data/ && "$0" get beta:data/in {given}/out --quiet; exit 42'
    command = [*_NOBODY, *ephemeral(site, parent, "--enrol", f"@{token}", "--export", f"given={given}:rw"),
               "--", "sh", "-c", script, site.binaries / "sluice"]  # fmt: skip
    os.chmod(site.base, 0o755)
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    assert result.returncode == 42, result.stderr
    assert same_bytes(given / "in", given / "out") and same_bytes(given / "in", beta.export() / "in")
    assert sorted(one.name for one in parent.iterdir()) == ["given", "token"]


def test_its_command_is_told_of_a_signal_and_nothing_stays(site, parent):
    token, _ = site.token("--name", "job-8")
    ready = parent / "ready"
    command = ["sh", "-c", f"trap 'exit 7' TERM; touch {ready}; while :; do sleep 0.1; done"]
    process = subprocess.Popen([*ephemeral(site, parent, "--enrol", token), "--", *command])
    wait_until(ready.exists, 60, "the command runs")
    process.send_signal(signal.SIGTERM)
    assert process.wait(120) == 7
    assert [one.name for one in parent.iterdir()] == ["ready"]


def test_a_daemon_that_dies_ends_the_command(site, parent):
    ready = parent / "ready"
    token, _ = site.token("--name", "job-9")
    command = ["sh", "-c", f"touch {ready}; exec sleep 600"]
    process = subprocess.Popen([*ephemeral(site, parent, "--enrol", token), "--", *command], stderr=subprocess.PIPE, text=True)
    wait_until(ready.exists, 60, "the command runs")
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    control = [pid for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text() == "sluice-control\n"]
    os.kill(int(control[0]), signal.SIGKILL)
    _, error = process.communicate(timeout=120)
    assert process.returncode == _DAEMON and "sluice-control ended with status 137" in error
    assert [one.name for one in parent.iterdir()] == ["ready"]


def test_without_a_command_it_runs_until_a_signal(site, parent):
    """The name of the job before is another key's, unless the token may replace it."""
    token, _ = site.token("--name", "job-8")
    result = subprocess.run(ephemeral(site, parent, "--enrol", token), capture_output=True, text=True, check=False)
    refused(result, _UNTRUSTED, "is taken")
    token, _ = site.token("--name", "job-8", "--replace")
    process = subprocess.Popen(ephemeral(site, parent, "--enrol", token), stdout=subprocess.PIPE, text=True)
    assert "node job-8 runs in" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 0 and list(parent.iterdir()) == []


@pytest.mark.skipif(slurm_missing() is not None, reason=str(slurm_missing()))
def test_a_job_of_slurm_brings_its_own_node(site, nodes, parent):
    """As the recipe in docs/FLEET.md: nobody's job, and nothing of the node stays."""
    beta = nodes[1]
    given = parent / "given"
    given.mkdir()
    (given / "in").write_bytes(os.urandom(_MIB))
    given.chmod(0o755)
    (parent / "token").write_text(site.token("--name", "job-*", "--uses", "2", "--certificate-for", "1h")[0])
    words = [*ephemeral(site, parent, "--enrol", f"@{parent}/token", "--export", f"given={given}:r"),
             "--name", "job-$SLURM_JOB_ID", "--", site.binaries / "sluice", "send", given / "in", "beta:data/of-slurm"]  # fmt: skip
    with Slurm(user="nobody") as slurm:
        made = slurm.submit(f"#!/bin/sh\n#SBATCH -o {parent}/out\nexec {' '.join(map(str, words))}\n")
        assert made.returncode == 0, made.stderr
        number = made.stdout.strip()
        job = wait_until(lambda: (job := slurm.job(number)).get("JobState") in ("COMPLETED", "FAILED") and job, 60, "it ends")
        assert job["JobState"] == "COMPLETED", (parent / "out").read_text()
    assert same_bytes(given / "in", beta.export() / "of-slurm")
    assert sorted(one.name for one in parent.iterdir()) == ["given", "out", "token"]
    assert {one["name"] for one in site.audit() if one["event"] == "enrolled"} >= {f"job-{number}"}


def test_a_revoked_node_is_a_stranger_where_the_list_is(site, nodes):
    alpha, beta = nodes
    site.must("revoke", site.directory, "beta")
    (alpha.directory / "authority/crl.pem").write_bytes((site.directory / "crl.pem").read_bytes())
    refused(beta.sluice("ls", "alpha:"), _UNTRUSTED)
    assert DOMAIN in (alpha.directory / "node.toml").read_text()
