# Debian packages that one experiment needs, installed when it is run; as `./dev deps` does it.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys

from .errors import MISSING, LabError

# Services of these packages shall not start: the lab starts its own, where and when it measures them. A bare
# machine has no package lists, or old ones: then once more after an update.
_SCRIPT = r"""
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy
  trap 'rm -f $policy' EXIT
fi
apt="apt-get -qq -o DPkg::Lock::Timeout=300"
$apt install -y --no-install-recommends "$@" || { $apt update && $apt install -y --no-install-recommends "$@"; }
"""


def missing(names):
    # dpkg-query fails if it does not know one of them; what it printed is what counts.
    known = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *names],
                           capture_output=True, text=True, check=False).stdout.splitlines()  # fmt: skip
    return [name for name in names if f"installed {name}" not in known]


def install(names):
    """Installs what is missing; an error names the packages, the reason, and what to run by hand."""
    if not names:
        return
    if shutil.which("dpkg-query") is None:
        raise LabError(f"packages: this is no Debian system; install by hand: {' '.join(names)}", MISSING)
    wanted = missing(names)
    if not wanted:
        return
    by_hand = f"apt-get install {' '.join(wanted)}"
    sudo = []
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            raise LabError(f"packages missing and not root: as root run: {by_hand}", MISSING)
        sudo = ["sudo"]
    print(f"lab: installing {len(wanted)} packages: {' '.join(wanted)}", file=sys.stderr, flush=True)
    script = [*sudo, "env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", _SCRIPT, "sh", *wanted]
    result = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        lines = [line for line in result.stdout.splitlines() if line.startswith("E:")] or ["failed"]
        raise LabError(f"apt-get install: {lines[0]}; run it by hand: {by_hand}", MISSING)
