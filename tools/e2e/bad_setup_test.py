# What is wrong with a node before it runs: one line that names it, the right exit status, no hanging start.
# SPDX-License-Identifier: Apache-2.0
import subprocess

import pytest
from harness import Node, find_binaries, is_root
from harness.hugepages import free_mib
from harness.system import free_ports
from transfers import CONFIGURATION, DAEMON, DEVICE, USAGE, refused


@pytest.fixture
def node(tmp_path):
    one = Node(find_binaries(), tmp_path / "n", "n", free_ports(1)[0], settings={
        "port": {"device": "net_null0", "address4": "10.77.0.1/24"},
        "dataplane": {"memory": "no-huge"},
    })  # fmt: skip
    one.add_export("data", tmp_path / "data")
    one.create()
    return one


def start(node, program):
    """The daemon in the foreground: it must refuse and end by itself."""
    command = [node.binaries / program, "--node", node.directory]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("program", ["sluice-dataplane", "sluice-control"])
@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("port", "colour", "blue"),
        ("port", "mtu", 17),
        ("port", "address4", "10.77.0.300/24"),
        ("dataplane", "poll", "sometimes"),
        ("transfer", "rate", "fast"),
        ("control", "listen", 7400),
    ],
)
def test_wrong_key_or_value(node, program, section, key, value):
    node.settings.setdefault(section, {})[key] = value
    node.write_configuration()
    refused(start(node, program), CONFIGURATION, "node.toml", key)


@pytest.mark.parametrize("program", ["sluice-dataplane", "sluice-control"])
def test_configuration_that_is_not_toml(node, program):
    (node.directory / "node.toml").write_text("[node\nname = n\n")
    refused(start(node, program), CONFIGURATION, "node.toml")


@pytest.mark.parametrize("program", ["sluice-dataplane", "sluice-control"])
def test_node_directory_that_is_not_there(node, program):
    node.directory = node.directory.parent / "elsewhere"
    refused(start(node, program), CONFIGURATION, "elsewhere")


def test_export_root_that_is_not_there(node, tmp_path):
    node.exports["gone"] = (tmp_path / "gone", "rw")
    node.write_configuration()
    refused(start(node, "sluice-control"), CONFIGURATION, "gone")


@pytest.mark.parametrize("device", ["0000:7f:1f.7", "net_nosuchdriver0", "net_af_packet0,iface=nosuch0"])
def test_no_such_device(node, device):
    if "af_packet" in device and not is_root():
        pytest.skip("af_packet needs root")
    node.settings["port"]["device"] = device
    node.write_configuration()
    refused(start(node, "sluice-dataplane"), DEVICE, device.split(",")[0])


@pytest.mark.skipif(not is_root(), reason="only root can give up rights here")
def test_af_packet_without_rights(node):
    node.settings["port"]["device"] = "net_af_packet0,iface=lo"
    node.write_configuration()
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", node.binaries / "sluice-dataplane", "--node",
               node.directory]  # fmt: skip
    refused(subprocess.run(command, capture_output=True, text=True, timeout=60, check=False), DEVICE, "CAP_NET_RAW")


def test_no_hugepages_where_they_are_demanded(node):
    node.settings["dataplane"].update(memory="hugepages", memory_mib=free_mib() + 1024)
    node.write_configuration()
    refused(start(node, "sluice-dataplane"), DEVICE, "hugepages")


SOCKETS = {"device": "udp"}


@pytest.mark.parametrize("port", [{}, SOCKETS], ids=["dpdk", "udp"])
def test_more_memory_than_there_is(node, port):
    node.settings["port"] = port or node.settings["port"]
    node.settings["dataplane"]["memory_mib"] = 1 << 20
    node.write_configuration()
    refused(start(node, "sluice-dataplane"), CONFIGURATION, "memory_mib = 1048576", "lower it")


@pytest.mark.parametrize("port", [{}, SOCKETS], ids=["dpdk", "udp"])
def test_a_cpu_that_is_not_there(node, port):
    node.settings["port"] = port or node.settings["port"]
    node.settings["dataplane"]["cores"] = [1023]
    node.write_configuration()
    refused(start(node, "sluice-dataplane"), CONFIGURATION, "cores", "1023")


def test_junk_among_the_trusted(node):
    (node.directory / "trusted").mkdir(exist_ok=True)
    (node.directory / "trusted" / "x.pem").write_text("junk")
    refused(start(node, "sluice-control"), CONFIGURATION, "x.pem")


def test_name_that_is_not_the_identitys(node):
    text = (node.directory / "node.toml").read_text()
    (node.directory / "node.toml").write_text(text.replace('name = "n"', 'name = "m"', 1))
    refused(start(node, "sluice-control"), CONFIGURATION, "node.toml", "name is m")


def test_init_does_not_cite_a_file_that_is_not_there(node, tmp_path):
    result = node.sluice("node", "init", tmp_path / "other", "--memory-mib", 99999999)
    assert "node.toml" not in refused(result, USAGE, "--memory-mib")


def test_second_dataplane_of_one_node(node):
    node.start_dataplane()
    try:
        result = start(node, "sluice-dataplane")
        assert result.returncode not in (0, None)
        assert "dataplane.sock" in result.stderr
        assert node.dataplane.running()
    finally:
        assert node.dataplane.stop() == 0


def test_nothing_runs(node):
    refused(node.sluice("session", "list"), DAEMON, "sluice-control")


def test_second_init_keeps_the_identity(node):
    before = node.certificate.read_bytes()
    result = node.sluice("node", "init", node.directory, "--name", "n")
    assert result.returncode == CONFIGURATION, result.stderr
    assert node.certificate.read_bytes() == before


def test_trust_of_something_that_is_no_certificate(node, tmp_path):
    junk = tmp_path / "junk.pem"
    junk.write_text("not a certificate")
    result = node.sluice("node", "trust", "other", junk, "--address", "127.0.0.1:1")
    assert result.returncode in (USAGE, CONFIGURATION), result.stderr
    assert "junk.pem" in result.stderr


@pytest.mark.parametrize("program", ["sluice-dataplane", "sluice-control"])
def test_an_export_that_holds_the_node_is_refused(node, program):
    """Peers could fetch its key, and pin themselves."""
    node.exports["all"] = (node.directory.parent, "r")
    node.write_configuration()
    refused(start(node, program), CONFIGURATION, "export all", "private key", "export another directory")
