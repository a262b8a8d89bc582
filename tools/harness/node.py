# One node: its directory, node.toml, identity, two daemons, and the CLI spoken to it.
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess

from . import operators
from .process import Daemon
from .system import HarnessError, wait_until

_READY_DEADLINE_S = 60


def toml(sections, exports, peers_of, quotas_of, words_of):
    """node.toml of nested dicts; values are strings, booleans, integers or lists of them. *_of: by export."""
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        lines.append("")
    for name, (path, mode) in exports.items():
        lines += ["[[export]]", f'name = "{name}"', f"path = {json.dumps(str(path))}", f'mode = "{mode}"']
        if name in peers_of:
            lines.append(f"peers = {json.dumps(peers_of[name])}")
        lines += [f'{key} = "{words[name]}"' for key, words in words_of.items() if name in words]
        for quota in quotas_of.get(name, []):
            lines += ["[[export.quota]]", *(f"{key} = {json.dumps(value)}" for key, value in quota.items())]
        lines.append("")
    return "\n".join(lines)


class Node:
    """enter: before the dataplane's command, which may live in a namespace; prefix: before both daemons', behind it."""

    def __init__(self, binaries, directory, name, port, enter=(), settings=None, prefix=()):
        self.binaries = pathlib.Path(binaries)
        self.directory = pathlib.Path(directory)
        self.name = name
        self.address = f"127.0.0.1:{port}"
        self.settings = {"node": {"name": name}, "control": {"listen": self.address}}
        self.exports = {}
        self.export_peers = {}
        self.export_quotas = {}
        self.export_owners = {}
        self.export_acls = {}
        self.export_direct = {}
        for section, keys in (settings or {}).items():
            self.settings.setdefault(section, {}).update(keys)
        logs = self.directory.parent
        self.dataplane = Daemon(
            f"sluice-dataplane of node {name}",
            [*enter, *prefix, self.binaries / "sluice-dataplane", "--node", self.directory],
            logs / f"{name}-dataplane.log",
        )
        self.control = Daemon(
            f"sluice-control of node {name}",
            [*prefix, self.binaries / "sluice-control", "--node", self.directory],
            logs / f"{name}-control.log",
        )

    def install(self, binaries):
        """Programs of another build, once neither daemon runs any more: an upgrade, or the way back."""
        binaries, former = pathlib.Path(binaries), self.binaries
        for daemon in (self.dataplane, self.control):
            daemon.command = [str(binaries / pathlib.Path(word).name) if pathlib.Path(word).parent == former else word for word in daemon.command]
        self.binaries = binaries

    def add_export(self, name, path, mode="rw", peers=None, quotas=()):
        """peers: all that may use it, as of [[export]] peers; quotas: the keys of each [[export.quota]]."""
        pathlib.Path(path).mkdir(parents=True, exist_ok=True)
        self.exports[name] = (pathlib.Path(path), mode)
        if peers is not None:
            self.export_peers[name] = peers
        self.export_quotas[name] = list(quotas)
        return pathlib.Path(path)

    def export(self, name="data"):
        return self.exports[name][0]

    # ---- life ---------------------------------------------------------------------------------

    def create(self):
        """`sluice node init`, then our own node.toml in place of the one it wrote."""
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        self.must("node", "init", self.directory, "--name", self.name)
        self.write_configuration()

    def write_configuration(self):
        words = {"owners": self.export_owners, "acls": self.export_acls, "direct": self.export_direct}
        text = toml(self.settings, self.exports, self.export_peers, self.export_quotas, words)
        (self.directory / "node.toml").write_text(text)

    def trust(self, other, name=None, address=None):
        self.must("node", "trust", name or other.name, other.certificate, "--address", address or other.address)

    @property
    def certificate(self):
        return self.directory / "identity" / "cert.pem"

    def start(self):
        self.start_dataplane()
        self.start_control()

    def start_dataplane(self):
        self.dataplane.start()
        self._wait(self.dataplane, lambda: (self.directory / "run" / "dataplane.sock").exists(), "is ready")

    def start_control(self):
        self.control.start()
        self.wait_attached()

    def attached(self):
        status, reply, _ = self.json("node", "show")
        live = reply.get("live") or reply
        return status == 0 and bool(live.get("dataplane_attached"))

    def wait_attached(self):
        self._wait(self.control, self.attached, "is attached to its dataplane")

    def _wait(self, daemon, condition, what):
        def ready():
            if not daemon.running():
                raise HarnessError(
                    f"{daemon.name}: ended with status {daemon.exit_status()}; its log ends:\n{daemon.log_tail()}"
                )
            return condition()

        try:
            wait_until(ready, _READY_DEADLINE_S, f"{daemon.name} {what}")
        except HarnessError as error:
            if daemon.running():
                raise HarnessError(f"{error}; its log ends:\n{daemon.log_tail()}") from None
            raise

    def stop(self):
        """Both daemons, in order. Returns their exit statuses (None: was not running)."""
        return self.control.stop(), self.dataplane.stop()

    # ---- the CLI ------------------------------------------------------------------------------

    def command(self, *arguments):
        return [str(self.binaries / "sluice"), "--node", str(self.directory), *map(str, arguments)]

    def _quiet(self, arguments):
        # Progress and errors share stderr; here only errors matter.
        return self.command(*arguments, *(["--quiet"] if arguments[0] in ("send", "get") else []))

    def sluice(self, *arguments, timeout_s=300, stdin=None):
        """Runs the CLI to its end, without progress: a CompletedProcess with text output."""
        return subprocess.run(
            self._quiet(arguments), capture_output=True, text=True, timeout=timeout_s, check=False, input=stdin
        )

    def must(self, *arguments, timeout_s=300):
        """A peer on a machine that stands still for some seconds seems not to answer: it is called again."""
        for _ in range(5):
            result = self.sluice(*arguments, timeout_s=timeout_s)
            if "no answer within" not in result.stderr:
                break
        if result.returncode != 0:
            message = result.stderr.strip() or result.stdout.strip() or "no message"
            raise HarnessError(f"sluice {' '.join(map(str, arguments))}: exit {result.returncode}: {message}")
        return result

    def json(self, *arguments, timeout_s=300):
        """(exit status, last line of stdout as an object, stderr)."""
        result = self.sluice(*arguments, "--json", timeout_s=timeout_s)
        lines = result.stdout.strip().splitlines()
        try:
            reply = json.loads(lines[-1]) if lines else {}
        except ValueError:
            reply = {}
        return result.returncode, reply, result.stderr

    def popen(self, *arguments):
        return subprocess.Popen(
            self._quiet(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def counters(self):
        """{name: value} of its dataplane; those that stand there several times are added up."""
        api = operators.messages()
        values = {}
        for one in operators.call(self.directory, "Counters", api.CountersRequest(), api.CountersReply).counters:
            values[one.name] = values.get(one.name, 0) + one.value
        return values

    def listed(self):
        """Its sessions as the operator's API has them, newest last."""
        api = operators.messages()
        return operators.call(self.directory, "ListSessions", api.ListSessionsRequest(), api.ListSessionsReply).sessions

    def shown(self, session):
        """The session as the operator's API has it, by its whole name."""
        api = operators.messages()
        return operators.call(self.directory, "ShowSession", api.SessionRef(id=session), api.Session)

    def sessions(self):
        """Newest last."""
        status, reply, error = self.json("session", "list")
        if status != 0:
            raise HarnessError(f"sluice session list: exit {status}: {error.strip()}")
        return reply.get("sessions", []) if isinstance(reply, dict) else reply
