"""sluice-console: serves the console of a node, and gives people links to it."""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import argparse
import json
import logging
import os
import pathlib
import sys
import time
import typing

from . import desk, settings, setup_key
from .errors import ConsoleError

STATIC = pathlib.Path(__file__).resolve().parent.parent / "static"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> typing.NoReturn:
        raise ConsoleError("usage", f"{message}; see '{self.prog} --help'")


def _arguments() -> argparse.Namespace:
    parser = _Parser(prog="sluice-console", description="The console of a node in the browser (docs/REFERENCE.md).")
    parser.add_argument("--node", type=pathlib.Path, default=os.environ.get("SLUICE_NODE") or "/etc/sluice", metavar="DIR",
                        help="directory of the node ($SLUICE_NODE, else /etc/sluice)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--static", type=pathlib.Path, default=STATIC, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("serve", help="serve it (without a command, too)")
    opened = commands.add_parser("open", help="print a link that signs you in, once, within a minute")
    opened.add_argument("--role", choices=settings.ROLES, help="come in as less than you may")
    commands.add_parser("sign-ins", help="who has signed in: you; of an operator all")
    revoked = commands.add_parser("revoke", help="end a sign-in")
    revoked.add_argument("id", metavar="ID|all", help="as sign-ins shows it")
    made = commands.add_parser("setup", help="make the console's key, and tell sluice-control of it")
    made.add_argument("--user", help="as whom sluice-console runs (you)")
    return parser.parse_args()


_SCHEMAS = {"open": "sluice.console_open.v1", "sign-ins": "sluice.console_sign_ins.v1", "revoke": "sluice.console_revoke.v1",
            "setup": "sluice.console_setup.v1"}  # fmt: skip


def _show(options: argparse.Namespace, reply: dict, text: str) -> None:
    print(json.dumps({"schema": _SCHEMAS[options.command], **reply}) if options.json else text)


def _sign_ins(reply: dict) -> str:
    rows = [f"{one['id']}  {one['user']:<12} {one['role']:<9} since {time.strftime('%F %T', time.localtime(one['made']))}"
            f"{'  watching' if one['watching'] else ''}" for one in reply["sign_ins"]]  # fmt: skip
    return "\n".join(rows) or "nobody has signed in"


def _perform(options: argparse.Namespace) -> None:
    chosen = settings.load(options.node.resolve())
    if options.command in (None, "serve"):
        from . import serve

        logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stderr)
        return serve.run(chosen, options.static)
    if options.command == "setup":
        user = options.user or setup_key.default_user()
        left = setup_key.setup(chosen, user)
        return _show(options, {"user": user, "left": left}, "made the key of the console. Now:\n" + "\n".join(f"  {one}" for one in left))
    asked: dict = {"ask": options.command}
    if options.command == "open" and options.role:
        asked["role"] = options.role
    if options.command == "revoke":
        asked["id"] = options.id
    reply = desk.ask(chosen, asked)
    if options.command == "open":
        print(f"signs in {reply['user']} as {reply['role']}, once, within {reply['seconds']} s:", file=sys.stderr)
        return _show(options, reply, reply["link"])
    if options.command == "revoke":
        return _show(options, reply, f"{reply['revoked']} ended")
    return _show(options, reply, _sign_ins(reply))


def main() -> int:
    try:
        _perform(_arguments())
        return 0
    except ConsoleError as error:
        print(f"sluice-console: {error}", file=sys.stderr)
        if "--json" in sys.argv:
            print(json.dumps(error.of_command()))
        return error.code


if __name__ == "__main__":
    sys.exit(main())
