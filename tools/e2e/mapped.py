# Two nodes that users of the host use; the second has a map of the first one's users.
# SPDX-License-Identifier: Apache-2.0
import json
import pwd
import subprocess

from harness import Pair
from harness.users import UsersHelper
from transfers import as_user, run_control_as

# Of Debian's own: two whose group is `nogroup`, one with a lower number, and one who is no member.
GROUP, ADA, HERE, SYSTEM, STRANGER = "nogroup", "nobody", "_apt", "sync", "games"
CONTROL = "daemon"  # whom both sluice-controls run as
USUAL = f"# whom users of a are here\n{ADA}@a {HERE}\n"


def uid(user):
    return pwd.getpwnam(user).pw_uid


class Mapped:
    """Two nodes that users use; b has a map."""

    def __init__(self, pair):
        self.pair, self.a, self.b = pair, pair.a, pair.b
        self.map = pair.base / "users.map"
        self.helpers = {node.name: UsersHelper(node, pair.base / f"{node.name}-users.log") for node in pair.nodes}

    def prepare(self):
        self.write(USUAL)
        self.b.settings["control"]["users_map_file"] = str(self.map)
        self.b.write_configuration()
        for node in self.pair.nodes:
            run_control_as(self.pair, node, CONTROL, also=(pwd.getpwnam(ADA).pw_gid,))

    def write(self, text):
        new = self.map.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o644)
        new.rename(self.map)

    def start_helper(self, node):
        self.helpers[node.name].start()

    def sluice(self, user, *words):
        command = [*as_user(user), *self.a.command(*words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def send(self, user, *words):
        return self.sluice(user, "send", *words, "--quiet")

    def get(self, user, *words):
        return self.sluice(user, "get", *words, "--quiet")

    def audit(self, event):
        """Lines of b."""
        lines = [json.loads(line) for line in (self.b.directory / "audit.ndjson").read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


def mapped_pair(make_pair, prepare_more=lambda _mapped: None):
    """For a fixture. prepare_more: before the nodes start."""
    control = {"users_group": GROUP, "users_uid_min": uid(HERE)}
    made = []

    def prepare(pair):
        assert isinstance(pair, Pair)
        made.append(Mapped(pair))
        prepare_more(made[0])
        made[0].prepare()

    make_pair(prepare, settings={"control": control, "dataplane": {"group": CONTROL}}, bytes_needed=1 << 29, in_memory=True)
    for node in made[0].pair.nodes:
        made[0].start_helper(node)
    yield made[0]
    for helper in made[0].helpers.values():
        assert helper.stop() == 0
        assert not helper.log_lines("the sandbox did not allow")
