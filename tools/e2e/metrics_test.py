# Metrics of two live nodes: scraped by a real Prometheus, judged by promtool, shown by the dashboard;
# DPDK's telemetry.
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import json
import pathlib
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from harness import Pair, wait_until
from harness.process import Daemon
from harness.system import free_ports
from transfers import CONFIGURATION, MIB, ended_session, finish, forget, make_file, push, start_slow

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "tools/monitoring"
_SAMPLE = re.compile(r"^([a-z_:]+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus and promtool are not here; install the package prometheus",
)


def address_of(node):
    return node.settings["control"]["metrics_listen"]


def scrape_text(node):
    with urllib.request.urlopen(f"http://{address_of(node)}/metrics", timeout=30) as answer:
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain")
        return answer.read().decode()


def scrape(node):
    """{name: [({label: value}, number)]}"""
    series = {}
    for line in scrape_text(node).splitlines():
        if match := _SAMPLE.match(line):
            series.setdefault(match[1], []).append((dict(_LABEL.findall(match[2] or "")), float(match[3])))
    return series


def value(node, name, **labels):
    """The sum of all samples with these labels; None where there is none."""
    found = [number for with_labels, number in scrape(node).get(name, []) if labels.items() <= with_labels.items()]
    return sum(found) if found else None


def told(node, number, name, **labels):
    """Waits until it is that: what a scrape tells may be as old as a second."""
    wait_until(lambda: value(node, name, **labels) == number, 30, f"{name} {labels} of node {node.name} is {number}")


def promtool(*words, text=None):
    result = subprocess.run(["promtool", *map(str, words)], input=text, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"promtool {' '.join(map(str, words))}: {result.stdout}{result.stderr}"
    return result.stdout + result.stderr


class Prometheus:
    """The real one, with our rules, scraping these nodes every second."""

    def __init__(self, folder, nodes):
        folder.mkdir()
        shutil.copy(MONITORING / "sluice.rules.yml", folder)
        example = (MONITORING / "prometheus.yml").read_text()
        targets = ", ".join(f'"{address_of(node)}"' for node in nodes)
        text = re.sub(r"targets: \[.*\]", f"targets: [{targets}]", example)
        assert text != example
        (folder / "prometheus.yml").write_text(text.replace("_interval: 15s", "_interval: 1s"))
        self._address = f"127.0.0.1:{free_ports(1)[0]}"
        self.daemon = Daemon("prometheus", [
            "prometheus", "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "data",
            "--web.listen-address", self._address,
        ], folder / "prometheus.log")  # fmt: skip
        self.daemon.start()

    def api(self, what, **arguments):
        url = f"http://{self._address}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            reply = json.load(answer)
        assert reply["status"] == "success", reply
        return reply["data"]

    def query(self, expression):
        """[({label: value}, number)]; None while it does not answer."""
        assert self.daemon.running(), self.daemon.log_tail()
        try:
            result = self.api("query", query=expression)["result"]
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise AssertionError(f"{expression}: {error.read().decode()}") from None
            return None
        except OSError:
            return None
        return [(one["metric"], float(one["value"][1])) for one in result]

    def wait(self, expression, count, deadline_s=60):
        """What it answers once that are `count` series."""

        def there():
            found = self.query(expression)
            return (found,) if found is not None and len(found) == count else None

        return wait_until(there, deadline_s, f"Prometheus knows {count} of {expression}")[0]


@pytest.fixture(scope="module")
def pair(make_pair):
    ports = free_ports(2)
    settings = [{"control": {"metrics_listen": f"127.0.0.1:{port}"}} for port in ports]
    return make_pair(settings_a=settings[0], settings_b=settings[1])


@pytest.fixture(scope="module")
def prometheus(pair):
    server = Prometheus(pair.base / "prometheus", pair.nodes)
    yield server
    server.daemon.stop()


@needs_prometheus
def test_prometheus_follows_a_session_from_both_nodes(pair, prometheus):
    assert {number for _, number in prometheus.wait('up{job="sluice"}', 2)} == {1.0}
    source = make_file(pair.a, 60 * MIB)
    process, session = start_slow(pair.a, "send", source, "b:data/", rate="100M")
    moving = prometheus.wait(f'sluice_session_payload_bytes_total{{session="{session}"}} > 0', 2)
    assert {labels["instance"] for labels, _ in moving} == {address_of(node) for node in pair.nodes}
    prometheus.wait(f'sluice_session_state{{session="{session}",state="transferring"}} == 1', 2)
    prometheus.wait(f'sluice_lane_blocked_seconds_total{{session="{session}",lane="0",reason="pacing"}} > 0', 1)
    prometheus.wait(f'sluice_session_info{{session="{session}",direction="send",peer="b"}}', 1)
    prometheus.wait(f'sluice_session_info{{session="{session}",direction="receive",peer="a"}}', 1)
    for node in pair.nodes:
        text = scrape_text(node)
        assert source.name not in text and str(pair.base) not in text, "names of files are nobody's business"
        promtool("check", "metrics", text=text)
    assert finish(process).returncode == 0
    forget(source, pair.b.export() / source.name)


@needs_prometheus
def test_the_rules_load_and_a_missing_dataplane_raises_an_alert(pair, prometheus):
    prometheus.wait('up{job="sluice"} == 1', 2)
    groups = prometheus.api("rules")["groups"]
    assert sum(len(group["rules"]) for group in groups) > 15
    assert {rule["health"] for group in groups for rule in group["rules"]} <= {"ok", "unknown"}, groups
    pair.b.dataplane.stop()
    pending = prometheus.wait('ALERTS{alertname="SluiceDataplaneNotAttached"}', 1)
    assert pending[0][0]["instance"] == address_of(pair.b)
    pair.b.start_dataplane()
    pair.b.wait_attached()
    prometheus.wait('ALERTS{alertname="SluiceDataplaneNotAttached"}', 0)


@needs_prometheus
def test_every_panel_of_the_dashboard_can_be_drawn(prometheus):
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    assert len(expressions) > 15
    for expression in expressions:
        for name, stands_for in (("$__rate_interval", "1m"), ("$instance", ".+"), ("$session", ".+")):
            expression = expression.replace(name, stands_for)
        assert "$" not in expression
        prometheus.wait('up{job="sluice"} == 1', 2)
        assert prometheus.query(expression) is not None


@needs_prometheus
def test_alert_rules_do_what_their_tests_say():
    promtool("check", "config", MONITORING / "prometheus.yml")
    promtool("check", "rules", MONITORING / "sluice.rules.yml")
    promtool("test", "rules", MONITORING / "sluice.rules.test.yml")


def test_rules_and_dashboard_name_only_metrics_that_there_are():
    known = set(re.findall(r"^\| `([a-z_]+)` \|", (ROOT / "docs/METRICS.md").read_text(), re.MULTILINE)) | {"up"}
    rules = (MONITORING / "sluice.rules.yml").read_text()
    recorded = set(re.findall(r"record: (\S+)", rules))
    tested = (MONITORING / "sluice.rules.test.yml").read_text()
    for alert in re.findall(r"alert: (\w+)", rules):
        assert alert in tested, f"{alert} has no test"
        assert alert in (ROOT / "docs/METRICS.md").read_text(), f"{alert} is not explained"
    dashboard = (MONITORING / "grafana-dashboard.json").read_text()
    for text in (rules, dashboard):
        for name in re.findall(r"\b(?:sluice|process)[_:][a-z0-9_:]+", text):
            assert name in known | recorded, name


def test_counters_are_those_of_the_command(pair):
    push(pair, source := make_file(pair.a, 3 * MIB + 1))
    for node in pair.nodes:
        counters = node.counters()
        for name, metric in (("disk_reads", "sluice_disk_reads_total"), ("disk_writes", "sluice_disk_writes_total"),
                             ("rx_drop_crc", "sluice_port_rx_drops_total")):  # fmt: skip
            labels = {"reason": "crc"} if name == "rx_drop_crc" else {}
            told(node, counters[name], metric, **labels)
    assert value(pair.b, "sluice_disk_writes_total") >= 4
    assert value(pair.b, "sluice_disk_write_seconds_total") > 0
    assert value(pair.a, "sluice_dataplane_attached") == 1
    forget(source, pair.b.export() / source.name)


def test_a_session_that_has_ended_drops_out_and_is_counted(pair):
    push(pair, source := make_file(pair.a, MIB))
    session = pair.a.sessions()[-1]["id"]
    ended_session(pair.b, session)
    for node in pair.nodes:
        good = [one for one in node.sessions() if one["state"] == "succeeded"]
        told(node, len(good), "sluice_sessions_ended_total", outcome="ok")
        assert session not in scrape_text(node)
    forget(source, pair.b.export() / source.name)


def test_lines_that_the_audit_log_lacks_are_counted(pair):
    log = pair.a.directory / "audit.ndjson"
    told(pair.a, 0, "sluice_audit_lines_lost_total")
    log.rename(log.with_suffix(".1"))
    log.mkdir()
    push(pair, source := make_file(pair.a, MIB))
    wait_until(lambda: value(pair.a, "sluice_audit_lines_lost_total") >= 2, 30, "its begin and its end are counted")
    log.rmdir()
    forget(source, pair.b.export() / source.name)


def test_callers_of_the_control_port_are_counted(pair):
    name = "sluice_control_connections_total"
    trusted, failed = (value(pair.b, name, outcome=outcome) for outcome in ("trusted", "failed"))
    push(pair, source := make_file(pair.a, MIB))
    host, _, port = pair.b.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as stranger:
        stranger.sendall(b"no TLS")
    told(pair.b, failed + 1, name, outcome="failed")
    assert value(pair.b, name, outcome="trusted") > trusted
    assert value(pair.b, "sluice_control_handshakes_delayed_total") == 0
    forget(source, pair.b.export() / source.name)


def test_many_scrapers_at_once_are_all_answered(pair):
    with concurrent.futures.ThreadPoolExecutor(32) as scrapers:
        texts = list(scrapers.map(lambda _: scrape_text(pair.a), range(64)))
    assert all("\nsluice_dataplane_attached 1\n" in text for text in texts)


def test_node_show_says_where_metrics_are(pair):
    for node in pair.nodes:
        status, shown, _ = node.json("node", "show")
        assert status == 0 and shown["metrics_listen"] == shown["live"]["metrics_address"] == address_of(node)
        assert f"metrics      http://{address_of(node)}/metrics\n" in node.must("node", "show").stdout


# ---- a node of its own, with a key that is wrong -----------------------------------------------


def start_with(pair, listen):
    """(exit status, what was said) of b's sluice-control with this key, beside the one that runs."""
    other = pair.base / "other"
    shutil.copytree(pair.b.directory, other, ignore=shutil.ignore_patterns("run", "journal*"))
    text = (other / "node.toml").read_text()
    (other / "node.toml").write_text(re.sub(r'metrics_listen = ".*"', f'metrics_listen = "{listen}"', text))
    try:
        result = subprocess.run([str(pair.b.binaries / "sluice-control"), "--node", str(other)],
                                capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    finally:
        shutil.rmtree(other)
    return result.returncode, result.stderr


def test_a_taken_port_and_a_wrong_address_end_the_start(pair):
    taken = address_of(pair.a)
    for listen, naming in ((taken, [taken, "Address already in use"]), ("192.0.2.1:7410", ["192.0.2.1:7410", "Cannot assign"]),
                           ("127.0.0.1", ["metrics_listen", "host:port"]), ("no such host:1", ["metrics_listen"])):  # fmt: skip
        status, said = start_with(pair, listen)
        assert status == CONFIGURATION, said
        for word in ["metrics_listen", *naming]:
            assert word in said.splitlines()[-1], said


def test_an_address_that_others_reach_is_taken_with_a_warning(pair):
    # The control port of b is taken, so that it ends at once, after it has said what it does.
    port = free_ports(1)[0]
    status, said = start_with(pair, f"0.0.0.0:{port}")
    assert status == CONFIGURATION and "cannot listen on" in said
    assert f"warning [control] metrics_listen = 0.0.0.0:{port}: whoever reaches that address" in said


def test_without_the_key_nothing_listens():
    with Pair() as pair:
        pair.a.start()
        _, shown, _ = pair.a.json("node", "show")
        assert shown["metrics_listen"] == "none" and shown["live"]["metrics_address"] == ""
        sockets = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout
        ours = [line for line in sockets.splitlines() if f"pid={pair.a.control.pid}," in line]
        assert len(ours) == 1 and pair.a.address in ours[0], sockets


# ---- DPDK --------------------------------------------------------------------------------------


def telemetry(node, *commands):
    """What DPDK answers to each, at the socket in the node's run directory."""
    path = node.directory / "run/dpdk/rte/dpdk_telemetry.v2"
    assert path.stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(30)
        connection.connect(str(path))
        hello = json.loads(connection.recv(4096))
        answers = []
        for command in commands:
            connection.send(command.encode())
            answers.append(json.loads(connection.recv(hello["max_output_len"])))
    assert hello["pid"] == node.dataplane.pid
    return answers


def test_dpdk_telemetry_answers_in_the_run_directory(pair):
    push(pair, source := make_file(pair.a, MIB))
    for node in pair.nodes:
        ports, stats = telemetry(node, "/ethdev/list", "/ethdev/stats,0")
        assert ports["/ethdev/list"] == [0]
        assert "opackets" in stats["/ethdev/stats"]
    forget(source, pair.b.export() / source.name)


def test_telemetry_is_back_after_a_dataplane_was_killed(pair):
    pair.b.dataplane.kill()
    pair.b.start_dataplane()
    pair.b.wait_attached()
    assert telemetry(pair.b, "/ethdev/list")[0]["/ethdev/list"] == [0]
