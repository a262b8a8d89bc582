# How the lab ends when it cannot do what it was asked.
# SPDX-License-Identifier: Apache-2.0
from harness import HarnessError

FAILED = 1  # a node, a peer or a tool did not do what it should
USAGE = 2  # no such experiment, no such option
MISSING = 3  # a tool, a right, room on the disk: what the message names
SKIPPED = 77  # this machine cannot show it


class LabError(HarnessError):
    """One line for a person, and the exit status of its class."""

    def __init__(self, message, code=FAILED):
        super().__init__(message)
        self.code = code
