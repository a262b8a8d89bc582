# What the package installs beside the programs: its units, the settings of the host, the audit log's rotation; and
# `sluice node setup` on a terminal. The package itself is tried by ./dev package --try.
# SPDX-License-Identifier: Apache-2.0
import email.utils
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import time

import pytest
from harness import find_binaries
from transfers import USAGE, refused

_LIMIT_S = 60  # a bound, no measure of time
_PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "package"
_UNITS = sorted(_PACKAGE.glob("systemd/*.service"))
_SOCKETS = sorted([*_PACKAGE.glob("systemd/*.socket"), *_PACKAGE.glob("systemd/*.timer")])  # nothing runs in these
_EXPOSURE_MAX = 3.0

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")


def run(*command, **options):
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=_LIMIT_S, check=False, **options)


# ---- units ---------------------------------------------------------------------------------------


@needs_systemd
def test_units_are_understood(tmp_path):
    """With programs that are here, as it looks whether they are."""
    for unit in _UNITS + _SOCKETS:
        text = unit.read_text().replace("/usr/sbin/", f"{find_binaries()}/").replace("/usr/bin/", f"{find_binaries()}/")
        (tmp_path / unit.name).write_text(text.replace("/usr/libexec/sluice/", f"{_PACKAGE}/"))
    result = run("systemd-analyze", "verify", "--man=no", *(tmp_path / unit.name for unit in _UNITS + _SOCKETS))
    ours = [line for line in (result.stdout + result.stderr).splitlines() if "sluice" in line]
    assert (result.returncode, ours) == (0, []), result.stderr


@needs_systemd
@pytest.mark.parametrize("unit", _UNITS, ids=lambda unit: unit.stem)
def test_units_are_confined(unit):
    result = run("systemd-analyze", "security", "--offline=true", "--no-pager", unit)
    found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", result.stdout)
    assert found, result.stdout + result.stderr
    assert float(found[1]) < _EXPOSURE_MAX, result.stdout


# What a daemon needs to give up what it does not need (dataplane/base/sandbox). systemd 252 has no set of these.
_OF_THE_SANDBOX = {"seccomp", "prctl", "capget", "capset", "landlock_create_ruleset", "landlock_add_rule",
                   "landlock_restrict_self", "tgkill"}  # fmt: skip


def _calls_of(name):
    """A call, or those of a set, and of the sets in it."""
    if not name.startswith("@"):
        return {name}
    lines = run("systemd-analyze", "syscall-filter", "--no-pager", name).stdout.splitlines()
    words = [line.strip() for line in lines if line.startswith(" ") and not line.strip().startswith("#")]
    return set().union(*(_calls_of(word) for word in words if word != name))


@needs_systemd
@pytest.mark.parametrize("unit", [unit for unit in _UNITS if not re.search("host|console|notify", unit.name)], ids=lambda unit: unit.name)
def test_a_unit_lets_its_daemon_confine_itself(unit):
    allowed = set()
    for line in unit.read_text().splitlines():
        key, _, value = line.partition("=")
        if key != "SystemCallFilter":
            continue
        calls = set().union(*map(_calls_of, value.removeprefix("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    assert allowed >= _OF_THE_SANDBOX, f"{unit.name} forbids {_OF_THE_SANDBOX - allowed}"


@needs_systemd
def test_units_are_known_to_the_scripts_of_the_package():
    assert (len(_UNITS), len(_SOCKETS)) == (8, 3)
    for script in ("debian/postinst", "debian/prerm", "debian/postrm", "rpm/post.lua", "rpm/preun.lua"):
        text = (_PACKAGE / script).read_text()
        for unit in _UNITS:
            # Of a template there are as many as somebody has made: they end when the package goes.
            name, template, _ = unit.name.partition("@")
            assert (name + template if template else unit.name) in text or (template and "/pre" not in script), script


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="no systemctl here")
@pytest.mark.parametrize("last", ["disable *", "enable *"], ids=["as_rhel", "as_debian"])
def test_the_presets_enable_three_services_on_any_system(tmp_path, last):
    for folder, files in {"system": _UNITS + _SOCKETS, "system-preset": [_PACKAGE / "systemd/sluice.preset"]}.items():
        place = tmp_path / "usr/lib/systemd" / folder
        place.mkdir(parents=True)
        for file in files:
            shutil.copy(file, place / ("50-" * (folder != "system") + file.name))
    (tmp_path / "usr/lib/systemd/system-preset/99-default.preset").write_text(last + "\n")
    assert run("systemctl", f"--root={tmp_path}", "preset-all").returncode == 0
    enabled = {path.name for path in (tmp_path / "etc/systemd/system").rglob("sluice*") if path.is_symlink()}
    assert enabled == {"sluice-host.service", "sluice-dataplane.service", "sluice-control.service"}
    script = (_PACKAGE / "rpm/post.lua").read_text()
    assert set(re.findall(r'"(sluice-\w+\.service)"', script)) == enabled


def test_a_purge_leaves_nothing_of_a_node(tmp_path):
    """On a root of its own, with every file that REFERENCE knows."""
    reference = (_PACKAGE.parents[1] / "docs/REFERENCE.md").read_text().split("## Files of a node")[1].split("\n#")[0]
    names = [name for row in re.findall(r"^\| (`.*?) \| 0", reference, re.MULTILINE) for name in re.findall(r"`([\w./-]+)`", row)]
    others = ["users.map", "notify.conf", "watch/spool.conf", "jobs/nightly.toml", "authority/token"]
    assert {"node.toml", "distrusted/WHAT", "authority/crl.pem"} <= set(names)
    for name in [*names, *others]:
        file = tmp_path / "etc/sluice" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            file.mkdir()
        elif name != "run":
            file.touch()
    received = tmp_path / "etc/sluice/data/received"
    received.parent.mkdir()
    received.touch()
    text = (_PACKAGE / "debian/postrm").read_text().replace("deb-systemd-helper", "no-such-helper")
    text = re.sub(r'(?<=[ "])/(?=(etc|var|run)/)', f"{tmp_path}/", text)
    assert not re.search(r"(?<!\w)/(etc|var|run)\b", text), "nothing of this host"
    result = run("sh", "-c", text, "postrm", "purge", env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "etc/sluice").iterdir()) == ["data"], "what was received stays"
    shutil.rmtree(received.parent)
    assert run("sh", "-c", text, "postrm", "purge", env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path).returncode == 0
    assert not (tmp_path / "etc/sluice").exists()


def test_the_packages_changelog_has_the_day_of_the_release():
    text = (_PACKAGE / "debian/changelog.in").read_text()
    told = re.search(r"^ -- .*>?  (.*)$", text, re.MULTILINE)[1]
    day = email.utils.parsedate_to_datetime(told)
    assert email.utils.format_datetime(day) == told, "its day of the week"
    assert f"## 1.0.0 - {day:%Y-%m-%d}" in (_PACKAGE.parents[1] / "CHANGELOG.md").read_text()


# ---- what the host is given ----------------------------------------------------------------------


class Host:
    """A host made of files; a card is bound by whoever writes to drivers_probe, which here is nobody."""

    def __init__(self, root):
        self.root = root
        for name in ("rmem_max", "wmem_max"):
            self.put(f"proc/sys/net/core/{name}", "212992")
        self.pool = "sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages"
        self.put(self.pool, "0")
        self.put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "700")

    def put(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text + "\n")

    def text(self, name):
        return (self.root / name).read_text().strip()

    def card(self, driver, address="0000:01:00.0"):
        device = self.root / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        bound = self.root / "sys/bus/pci/drivers" / driver
        bound.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(bound)
        group = self.root / "sys/kernel/iommu_groups/17"
        group.mkdir(parents=True)
        (device / "iommu_group").symlink_to(group)
        self.put("dev/vfio/17", "")
        return device

    def prepare(self, **settings):
        return run(_PACKAGE / "sluice-host", env={"PATH": os.environ["PATH"], "ROOT": str(self.root),
                                                  "GROUP": str(os.getgid()), **settings})  # fmt: skip


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_the_host_is_given_more_and_never_less(host):
    host.put("proc/sys/net/core/wmem_max", "8388608")
    result = host.prepare(SOCKET_BUFFER_BYTES="4194304", HUGEPAGES_MIB="1023", HUGEPAGES_NODE="1")
    assert result.returncode == 0, result.stderr
    assert host.text("proc/sys/net/core/rmem_max") == "4194304"
    assert host.text("proc/sys/net/core/wmem_max") == "8388608"
    assert host.text(host.pool) == "512"
    assert host.prepare(HUGEPAGES_MIB="64").returncode == 0
    assert host.text("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages") == "700"


def test_a_card_that_vfio_has_is_given_to_the_dataplane(host):
    host.card("vfio-pci")
    result = host.prepare(DEVICE="0000:01:00.0")
    assert result.returncode == 0, result.stderr
    assert (host.root / "dev/vfio/17").stat().st_mode & 0o777 == 0o660


def test_a_card_that_its_driver_keeps_is_said(host):
    device = host.card("ixgbe")
    (host.root / "sys/bus/pci/drivers/vfio-pci").mkdir()
    result = host.prepare(DEVICE="0000:01:00.0")
    assert host.text("sys/bus/pci/devices/0000:01:00.0/driver_override") == "vfio-pci"
    assert host.text("sys/bus/pci/drivers/ixgbe/unbind") == "0000:01:00.0"
    assert host.text("sys/bus/pci/drivers_probe") == "0000:01:00.0"
    assert device.exists()
    refused_by_host(result, "0000:01:00.0", "vfio-pci does not take it")


def test_a_card_that_dpdk_drives_beside_its_driver_keeps_it(host):
    device = host.card("mlx5_core")
    (host.root / "sys/bus/pci/drivers/vfio-pci").mkdir()
    refused_by_host(host.prepare(DEVICE="0000:01:00.0"), "0000:01:00.0", "its driver stays")
    assert not (device / "driver_override").exists()
    assert not (host.root / "sys/bus/pci/drivers/mlx5_core/unbind").exists()


def refused_by_host(result, *words):
    assert result.returncode == 1
    for word in words:
        assert word in result.stderr, result.stderr


@pytest.mark.parametrize(("settings", "words"), [
    ({"DEVICE": "eth0"}, ("DEVICE=eth0", "PCI address")),
    ({"DEVICE": "0000:7f:1f.7"}, ("no such PCI device",)),
    ({"DEVICE": "../../x"}, ("PCI address",)),
    ({"HUGEPAGES_MIB": "much"}, ("HUGEPAGES_MIB=much",)),
    ({"HUGEPAGES_MIB": "64", "HUGEPAGES_NODE": "7"}, ("node7", "not there")),
    ({"SOCKET_BUFFER_BYTES": "4M"}, ("SOCKET_BUFFER_BYTES=4M",)),
])  # fmt: skip
def test_what_cannot_be_given_is_named(host, settings, words):
    refused_by_host(host.prepare(**settings), *words)


# ---- the audit log -------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="no logrotate here")
def test_the_audit_log_is_renamed_and_no_line_is_lost(tmp_path):
    log = tmp_path / "audit.ndjson"
    text = (_PACKAGE / "sluice.logrotate").read_text().replace("/var/lib/sluice/audit.ndjson", str(log))
    tmp_path.chmod(0o700)
    configuration = tmp_path / "rotate"
    configuration.write_text(text.replace("su sluice-control sluice-control", ""))
    configuration.chmod(0o644)
    for number in range(3):
        log.write_text(f"{number}\n")
        with log.open("a") as late:  # a line on its way while the file is renamed
            result = run("logrotate", "--force", "--state", tmp_path / "state", configuration)
            assert result.returncode == 0, result.stderr
            late.write("late\n")
        assert not log.exists()
        newest = max(tmp_path.glob("audit.ndjson-*"), key=lambda path: (path.suffix != ".gz", path.name))
        assert newest.read_text() == f"{number}\nlate\n"
        newest.rename(tmp_path / f"kept{number}")
    assert "copytruncate\n" not in re.sub("#.*", "", text)


# ---- node setup ----------------------------------------------------------------------------------


def test_setup_asks_nobody_where_nobody_is(tmp_path):
    command = [find_binaries() / "sluice", "node", "setup", tmp_path / "n"]
    refused(run(*command, stdin=subprocess.DEVNULL), USAGE, "--yes")
    result = run(*command, "--yes", "--name", "alpha", "--json", stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stderr
    reply = json.loads(result.stdout)
    assert (reply["schema"], reply["name"], reply["device"], reply["service"]) == (
        "sluice.node_setup.v1", "alpha", "udp", False)  # fmt: skip
    assert (tmp_path / "n/data").is_dir()


class Terminal:
    def __init__(self, *command):
        self._master, worker = pty.openpty()
        self._process = subprocess.Popen([str(word) for word in command], stdin=worker, stdout=worker, stderr=worker)
        os.close(worker)
        self._unread = ""

    def answers(self, question, answer):
        end = time.monotonic() + _LIMIT_S
        while question not in self._unread:
            assert self._reads(end), self._unread
        self._unread = self._unread.split(question, 1)[1]
        os.write(self._master, answer.encode() + b"\n")

    def rest(self):
        end = time.monotonic() + _LIMIT_S
        while self._reads(end):
            pass
        os.close(self._master)
        return self._process.wait(timeout=_LIMIT_S), self._unread

    def _reads(self, end):
        if not select.select([self._master], [], [], max(0, end - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self._unread += data.decode(errors="replace")
        return bool(data)


def test_setup_asks_on_a_terminal(tmp_path):
    terminal = Terminal(find_binaries() / "sluice", "node", "setup", tmp_path / "n")
    terminal.answers("Name of this node", "Wrong Name")
    terminal.answers("no node name", "gamma")
    terminal.answers("Address where other nodes call", "127.0.0.1:7499")
    terminal.answers("Device", "nosuch0")
    terminal.answers("is no network card of this host", "udp")
    terminal.answers("Directory to share", str(tmp_path / "share"))
    terminal.answers("Make it?", "yes")
    status, text = terminal.rest()
    assert status == 0, text
    assert "node gamma in" in text
    configuration = (tmp_path / "n/node.toml").read_text()
    assert re.search(r'^listen = "127.0.0.1:7499"$', configuration, re.MULTILINE)
    assert (tmp_path / "share").is_dir()
