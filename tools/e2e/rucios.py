# Rucio's side of rucio_test.py: its configuration, and the process in its own environment that does what is asked of it.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import shutil
import subprocess

from harness import HarnessError, wait_until

TOOLS = pathlib.Path(__file__).resolve().parents[1]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
RUCIO = pathlib.Path(os.environ.get("SLUICE_RUCIO") or CACHE / "sluice/rucio")
PYTHON = RUCIO / "bin/python3"

CONFIGURATION = """
[common]
logdir = {base}
loglevel = INFO
[client]
rucio_host = http://localhost
auth_host = http://localhost
auth_type = userpass
[database]
default = sqlite:///{base}/rucio.db
[bootstrap]
userpass_identity = ddmlab
userpass_pwd = secret
userpass_email = a@b
x509_identity = /CN=x
x509_email = a@b
gss_identity = a@b
gss_email = a@b
ssh_identity = a
ssh_email = a@b
[policy]
permission = generic
schema = generic
lfn2pfn_algorithm_default = hash
support = a
support_rucio = a
[conveyor]
transfertool = sluice
use_preparer = false
[sluice]
node = {node}
"""


def rucio_missing():
    """Why there can be no Rucio here; None: there can."""
    there = (RUCIO / "bin/rucio-conveyor-submitter").exists()
    return None if there else f"no Rucio in {RUCIO}: ./dev rucio installs it there"


class Rucio:
    """rucio_host.py, and what tests ask of it. What it logs stands in rucio.log."""

    def __init__(self, base, node):
        base.mkdir()
        self._base = base
        packages = base / "packages"
        for name in ("python/sluice", "rucio/sluice_rucio"):
            shutil.copytree(TOOLS / name, packages / pathlib.Path(name).name, ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run([PYTHON, "-B", TOOLS / "python/generate.py", packages / "sluice"], check=True)
        (base / "rucio.cfg").write_text(CONFIGURATION.format(base=base, node=node.directory))
        self.environment = {**os.environ, "RUCIO_CONFIG": str(base / "rucio.cfg"), "RUCIO_HOME": str(base),
                            "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip
        self._log = (base / "rucio.log").open("wb")
        self._process = subprocess.Popen([PYTHON, TOOLS / "e2e/rucio_host.py"], env=self.environment, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=base)  # fmt: skip

    def close(self):
        self._process.stdin.close()
        self._process.wait(60)
        self._log.close()

    def do(self, what, **arguments):
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"rucio_host.py has ended; its log ends:\n{self.log()}"
        answer = json.loads(line)
        assert "error" not in answer, f"{what}: {answer['error']}\n{self.log()}"
        return answer["answer"]

    def log(self):
        return "\n".join((self._base / "rucio.log").read_text(errors="replace").splitlines()[-60:])

    def run(self, *words):
        """The command of the package, as an operator starts a daemon."""
        return subprocess.run([PYTHON, "-m", "sluice_rucio.daemon", *words], env=self.environment, cwd=self._base,
                              capture_output=True, text=True, timeout=300, check=False)  # fmt: skip

    def requests(self, rule):
        return {each["name"]: each for each in self.do("state", rule_id=rule)["requests"]}

    def polled(self, rule, done=lambda state: state != "SUBMITTED"):
        """Polls as the daemon does, until `done` of all requests of the rule."""
        seen = {}

        def there():
            self.do("poll")
            seen.update(self.requests(rule))
            return all(done(each["state"]) for each in seen.values())

        try:
            wait_until(there, 120, f"Rucio knows the end of each request of rule {rule}")
        except HarnessError as error:
            raise HarnessError(f"{error}: {seen}\n{self.log()}") from None
        return seen
