"""The console in the browser: a gateway between browsers and sluice-control (docs/REFERENCE.md, "The console").

It has no rights of its own. Each call to control says for which person of this host it is, and control judges what that
person may do.
"""
# SPDX-License-Identifier: Apache-2.0
