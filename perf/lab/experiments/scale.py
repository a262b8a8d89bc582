# Control as what it knows grows (docs/SCALE.md): peers that it trusts, sessions in its journal, sessions one after the other; and the
# planner of fleets at a list that is made as it is read. CPU seconds of the processes themselves, so that other work on the machine
# changes little.
#
#   case      peers     a control alone, which trusts so many: each by a pin of its own, or all by one authority with their addresses in
#                       one file. handshake_ms: CPU of control for a call of one of them, from the connection to its verdict.
#             journal   two nodes have moved one file, and the journal of the one has that session so often, as if it had ended today
#             burst     one file of 1 KiB after the other, eight at a time, by two nodes on sockets, each of which trusts 1,000 others by
#                       pins; a row for each part of them
#             plan      sluice-bench: ns a file and the planner's own tables, sizes lognormal, 1000 shards
#
# rest_ms_per_s: CPU of control in a second in which nobody calls. grows_*: the figure of the largest case over that of the smallest.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
import tempfile
import time
import urllib.request

from harness import HarnessError, Node, Pair, VethWire, find_binaries, veth_missing, wait_until
from harness.system import free_ports, scratch_parent

from ..errors import MISSING, LabError
from ..figures import median, ratio, rounded
from ..meter import process_cpu_s
from . import shapes

HELP = "control at 1,000 peers and 10,000 sessions: what a handshake, a start, a list and a session cost; the planner"
REAL = False
PACKAGES = ("python3-cryptography",)
PINS, AUTHORITY = "pins", "authority"
PEERS = (10, 100, 1000)
ENDED = (1, 1000, 10_000)
_AT_ONCE = 8
_DOMAIN = "dtn.example.org"
_ASKED = 30  # times each list, show and scrape
_SETTLED_S = 4  # what has just been written is looked at more closely
_NS = 1_000_000_000


def run(bench):
    if (reason := veth_missing()) is not None:
        raise LabError(f"scale: {reason}", MISSING)
    peers = [{"case": "peers", "trust": trust, "peers": count} for trust in (PINS, AUTHORITY) for count in PEERS]
    journal = [{"case": "journal", "ended": count} for count in ENDED]
    parts = 5
    burst = [{"case": "burst", "part": part, "sessions": bench.pick(60, 2000)} for part in range(1, parts + 1)]
    plan = [{"case": "plan", "files": count} for count in bench.pick((10**6, 10**7), (10**6, 10**7, 10**8, 10**9))]
    bench.described = {"kind": "own", "wire": "udp over veth"}
    calls, rest_s = bench.pick((60, 6), (200, 10))
    repeats = bench.repeats_or(1, 3)
    samples = bench.interleave(peers, lambda each: of_peers(each, calls, rest_s), nothing, repeats=repeats)
    with pair_of_nodes() as pair:
        pair.start()
        must_send(pair, 0)
        samples += bench.interleave(journal, lambda each: of_journal(pair, each["ended"]), nothing, repeats=repeats)
    with pair_of_nodes() as pair:
        for node in pair.nodes:
            pin_others(node, Keys(pair.base), PEERS[-1])
        pair.start()
        must_send(pair, 0)
        time.sleep(_SETTLED_S)
        samples += bench.interleave(burst, lambda each: of_burst(pair, each), nothing, repeats=1)
    samples += bench.interleave(plan, lambda each: of_plan(each["files"]), nothing, repeats=1)
    rows = bench.must_have_rows(bench.rows(peers + journal + burst + plan, samples))
    return {"rows": rows, "summary": summary(rows)}


def nothing(_setting):
    """Each measures a process of its own, or goes on where the last one stopped: there is nothing to warm up."""


# ---- peers ------------------------------------------------------------------------------------------


def of_peers(setting, calls, rest_s):
    parent = pathlib.Path(tempfile.mkdtemp(prefix="sluice-", dir=scratch_parent(1 << 26, True)))
    node = None
    try:
        node = Node(find_binaries(), parent / "hub", "hub", free_ports(1)[0])
        caller = make_trust(node, setting["trust"], setting["peers"])
        node.write_configuration()
        node.control.start()
        wait_until(lambda: accepts(node) or not node.control.running(), 120, "sluice-control listens")
        if not node.control.running():
            raise HarnessError(f"{node.control.name}: {node.control.log_tail(3)}")
        start_s = process_cpu_s(node.control.pid)
        time.sleep(_SETTLED_S)
        call(node, caller)  # whoever is known has a pace of its own
        rested = cpu_of(node.control.pid, lambda: time.sleep(rest_s))
        called = cpu_of(node.control.pid, lambda: [call(node, caller) for _ in range(calls)])
        return {"start_s": start_s, "rest_ms_per_s": rested * 1e3 / rest_s, "handshake_ms": called * 1e3 / calls, **figures_of(node, "")}
    finally:
        if node:
            node.control.stop()
        shutil.rmtree(parent, ignore_errors=True)


def make_trust(node, trust, count):
    """Certificate and key of one whom it trusts."""
    node.create()
    keys = Keys(node.directory.parent)
    if trust == AUTHORITY:
        names = [f"site-{number:04}" for number in range(count)]
        node.settings["control"] |= {"ca_file": str(keys.authority()), "ca_domain": _DOMAIN, "addresses_file": str(keys.folder / "peers")}
        (keys.folder / "peers").write_text("".join(f"{name} 192.0.2.1:7400\n" for name in names))
        return keys.files(names[0], by_authority=True)
    return pin_others(node, keys, count)


def pin_others(node, keys, count):
    """Certificate and key of one of them."""
    trusted = node.directory / "trusted"
    trusted.mkdir(exist_ok=True)
    for number in reversed(range(count)):
        made = keys.files(f"site-{number:04}")
        shutil.copyfile(made[0], trusted / made[0].name)
        (trusted / f"{made[0].stem}.toml").write_text('address = "192.0.2.1:7400"\n')
    return made


class Keys:
    """Ed25519 keys and their certificates, as `sluice node init` and an authority make them."""

    def __init__(self, folder):
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self.folder = folder
        self._x509, self._form, self._keys = x509, serialization, ed25519.Ed25519PrivateKey
        self._issuer = None

    def authority(self):
        self._issuer = self._keys.generate()
        self._write("ca", self._issuer, [(self._x509.BasicConstraints(ca=True, path_length=0), True)], self._issuer, "ca")
        return self.folder / "ca.pem"

    def files(self, name, by_authority=False):
        key = self._keys.generate()
        names = [(self._x509.SubjectAlternativeName([self._x509.DNSName(f"{name}.{_DOMAIN}")]), False)] if by_authority else []
        return self._write(name, key, names, self._issuer if by_authority else key, "ca" if by_authority else name)

    def _write(self, name, key, extensions, issuer, issuer_name):
        def named(text):
            return self._x509.Name([self._x509.NameAttribute(self._x509.oid.NameOID.COMMON_NAME, text)])

        now, day = datetime.datetime.now(datetime.timezone.utc), datetime.timedelta(days=1)
        builder = (self._x509.CertificateBuilder().subject_name(named(name)).issuer_name(named(issuer_name)).public_key(key.public_key())
                   .serial_number(self._x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + 365 * day))  # fmt: skip
        for extension, critical in extensions:
            builder = builder.add_extension(extension, critical=critical)
        files = self.folder / f"{name}.pem", self.folder / f"{name}-key.pem"
        files[0].write_bytes(builder.sign(issuer, None).public_bytes(self._form.Encoding.PEM))
        files[1].write_bytes(key.private_bytes(self._form.Encoding.PEM, self._form.PrivateFormat.PKCS8, self._form.NoEncryption()))
        return files


def accepts(node):
    host, _colon, port = node.address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def call(node, caller):
    """As a peer: the handshake, and the empty frame that says that it is trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(*caller)
    host, _colon, port = node.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=60) as plain, context.wrap_socket(plain) as stream:
        if not stream.recv(4):
            raise HarnessError("the node does not trust the caller that was made for it")


# ---- sessions ---------------------------------------------------------------------------------------


def pair_of_nodes():
    ports = free_ports(2)
    settings = [{"control": {"metrics_listen": f"127.0.0.1:{port}"}} for port in ports]
    return Pair(VethWire(rate=shapes.RATE, sockets=(0, 1)), bytes_needed=1 << 28, settings_a=settings[0], settings_b=settings[1], in_memory=True)


def must_send(pair, number):
    source = pair.a.export() / "file"
    if not source.exists():
        source.write_bytes(os.urandom(1024))
    pair.a.must("send", source, f"b:data/copy{number}")


def of_journal(pair, count):
    pair.a.control.stop()
    fill_journal(journal_of(pair.a), count)
    pair.a.control.start()
    wait_until(lambda: not pair.a.control.running() or pair.a.attached(), 300, "sluice-control has started")
    if not pair.a.control.running():
        raise HarnessError(f"{pair.a.control.name}: {pair.a.control.log_tail(1)}")
    pid = pair.a.control.pid
    start_s = process_cpu_s(pid)
    newest = pair.a.sessions()[-1]["id"]

    def ms(action):
        return cpu_of(pid, lambda: [action() for _ in range(_ASKED)]) * 1e3 / _ASKED

    return {"start_s": start_s, "list_ms": ms(pair.a.sessions), "show_ms": ms(lambda: pair.a.must("session", "show", newest)),
            "scrape_ms": ms(lambda: scrape(pair.a)), **figures_of(pair.a, "")}  # fmt: skip


def journal_of(node):
    return node.directory / "journal.sqlite"


def fill_journal(path, count):
    """So many sessions in all, each as the newest one, with its files."""
    with sqlite3.connect(path) as journal:
        ids = [row[0] for row in journal.execute("SELECT id FROM session ORDER BY started DESC")]
        first, extra = ids[0], ids[count:]
        for one in extra:
            for table, key in (("session", "id"), ("file", "session"), ("block", "session")):
                journal.execute(f"DELETE FROM {table} WHERE {key}=?", (one,))
        state, started, record, request = journal.execute("SELECT state, started, record, request FROM session WHERE id=?", (first,)).fetchone()
        files = journal.execute("SELECT object, record FROM file WHERE session=?", (first,)).fetchall()
        for number in range(len(ids), count):
            other = f"{number:032x}"
            journal.execute("INSERT INTO session(id, state, started, record, request) VALUES(?,?,?,?,?)",
                            (other, state, started - number - 1, record.replace(first.encode(), other.encode()), request))  # fmt: skip
            journal.executemany("INSERT INTO file VALUES(?,?,?)", [(other, *file) for file in files])
    journal.close()


def of_burst(pair, setting):
    count, part = setting["sessions"], setting["part"]
    pids = {"a": pair.a.control.pid, "b": pair.b.control.pid, "dataplanes": (pair.a.dataplane.pid, pair.b.dataplane.pid)}
    before = {"a": process_cpu_s(pids["a"]), "b": process_cpu_s(pids["b"]), "dataplanes": sum(map(process_cpu_s, pids["dataplanes"]))}
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as threads:
        for done in [threads.submit(must_send, pair, part * count + number) for number in range(count)]:
            done.result()
    wall_s = time.monotonic() - began
    after = {"a": process_cpu_s(pids["a"]), "b": process_cpu_s(pids["b"]), "dataplanes": sum(map(process_cpu_s, pids["dataplanes"]))}
    spent = {f"{name}_ms": (after[name] - before[name]) * 1e3 / count for name in before}
    list_ms = cpu_of(pids["a"], lambda: [pair.a.sessions() for _ in range(_ASKED)]) * 1e3 / _ASKED
    return {**spent, "per_s": count / wall_s, "list_ms": list_ms, "metric_lines": len(scrape(pair.a).splitlines()), **figures_of(pair.a, "a_"),
            **figures_of(pair.b, "b_")}  # fmt: skip


def scrape(node):
    with urllib.request.urlopen(f"http://{node.settings['control']['metrics_listen']}/metrics", timeout=30) as answer:
        return answer.read().decode()


# ---- the planner ------------------------------------------------------------------------------------


def of_plan(files):
    program = find_binaries() / "sluice-bench"
    if not program.exists():
        raise HarnessError(f"{program}: not built; run ninja -C build/release sluice-bench")
    told = subprocess.run([program, "--benchmark_filter=fleet_plan_at_scale", "--benchmark_format=json"], capture_output=True, text=True,
                          check=False, timeout=3600, env={**os.environ, "SLUICE_PLAN_FILES": str(files)})  # fmt: skip
    try:
        row = json.loads(told.stdout)["benchmarks"][0]
    except (ValueError, LookupError):
        raise HarnessError(f"sluice-bench: no figures: {told.stderr.strip()[-200:]}") from None
    return {key: row[key] for key in ("ns_per_file", "table_mib", "rss_growth_mib", "worst_over_mean")}


# ---- figures ----------------------------------------------------------------------------------------


def cpu_of(pid, action):
    before = process_cpu_s(pid)
    action()
    return process_cpu_s(pid) - before


def figures_of(node, prefix):
    pid = node.control.pid
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    found = {name: int(re.search(rf"^{key}:\s+(\d+)", status, re.MULTILINE)[1]) for name, key in (("kib", "VmRSS"), ("threads", "Threads"))}
    journal = sum(path.stat().st_size for path in node.directory.glob("journal.sqlite*"))
    return {f"{prefix}rss_mib": found["kib"] / 1024, f"{prefix}threads": found["threads"],
            f"{prefix}descriptors": len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())), f"{prefix}journal_mib": journal / (1 << 20)}  # fmt: skip


def summary(rows):
    def of(case, key, **words):
        found = [row.get(key) for row in rows if row["case"] == case and all(row.get(name) == word for name, word in words.items())]
        return found or [None]

    def growth(values):
        return rounded(ratio(values[-1], values[0]))

    out = {}
    for trust in (PINS, AUTHORITY):
        out[f"handshake_ms_{trust}"] = rounded(of("peers", "handshake_ms", trust=trust)[-1])
        out[f"grows_handshake_{trust}"] = growth(of("peers", "handshake_ms", trust=trust))
        out[f"rest_ms_per_s_{trust}"] = rounded(of("peers", "rest_ms_per_s", trust=trust)[-1])
    out["journal_start_s"] = rounded(of("journal", "start_s")[-1])
    out["session_ms"] = rounded(median(of("burst", "a_ms")))
    out["grows_session"] = growth(of("burst", "a_ms"))
    out["plan_ns_per_file"] = rounded(of("plan", "ns_per_file")[-1])
    return out


def plots(result):
    def draw(axes):
        for trust in (PINS, AUTHORITY):
            rows = [row for row in result["rows"] if row["case"] == "peers" and row["trust"] == trust]
            shapes.line(axes, rows, "peers", "handshake_ms", label=trust)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("peers")
        axes.set_ylabel("CPU of a handshake, ms")
        shapes.legend(axes)

    return [("handshake", draw)]
