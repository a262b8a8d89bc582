"""Who has signed in: one-time links, and the sign-ins that they become.

A sign-in has two halves, both 256 bits of chance: a cookie that no script reads, and a page key that only pages of this
origin have, so that neither another port of the host nor another site calls in somebody's name. Only their hashes are
kept, in a file of mode 0600: a console that starts again knows who had signed in, and a thief of the file does not become
them. On the event loop.
"""
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import hmac
import json
import os
import pathlib
import secrets
import time
from typing import Callable

LINK_S = 60
LINKS_MAX = 256
SIGN_INS_MAX = 1024
SIGN_INS_OF_ONE = 32
STREAMS_OF_ONE = 12
_SAVE_EVERY_S = 60


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@dataclasses.dataclass
class SignIn:
    cookie: str  # its hash
    page_key: str  # likewise
    uid: int
    name: str
    role: str
    made: float  # seconds since 1970
    used: float
    proxy_user: str = ""  # as whom the proxy knew them; empty: by a link
    streams: set[asyncio.Event] = dataclasses.field(default_factory=set, repr=False)

    @property
    def public_id(self) -> str:
        return self.cookie[:12]

    def end_streams(self) -> None:
        for stream in list(self.streams):
            stream.set()


@dataclasses.dataclass
class _Link:
    uid: int
    name: str
    role: str
    until: float


class SignIns:
    def __init__(self, file: pathlib.Path, idle_s: int, absolute_s: int, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._idle_s = idle_s
        self._absolute_s = absolute_s
        self._clock = clock
        self._links: dict[str, _Link] = {}
        self._all: dict[str, SignIn] = {}
        self._saved = 0.0
        self._load()

    # ---- links ----

    def make_link(self, uid: int, name: str, role: str) -> str:
        """Its secret, which works once, within a minute."""
        now = self._clock()
        self._links = {key: link for key, link in self._links.items() if link.until > now}
        while len(self._links) >= LINKS_MAX:
            del self._links[next(iter(self._links))]
        secret = secrets.token_urlsafe(32)
        self._links[digest(secret)] = _Link(uid, name, role, now + LINK_S)
        return secret

    def take_link(self, secret: str) -> tuple[str, str, SignIn] | None:
        """Cookie, page key and sign-in, if the link is good. It is gone then."""
        link = self._links.pop(digest(secret), None)
        if link is None or link.until <= self._clock():
            return None
        return self.make(link.uid, link.name, link.role)

    # ---- sign-ins ----

    def make(self, uid: int, name: str, role: str, proxy_user: str = "") -> tuple[str, str, SignIn]:
        self._expire()
        cookie, page_key, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._clock()
        of_one = sorted((each for each in self._all.values() if each.uid == uid), key=lambda each: each.used)
        for old in of_one[: max(0, len(of_one) - SIGN_INS_OF_ONE + 1)]:
            self.end(old)
        while len(self._all) >= SIGN_INS_MAX:
            self.end(min(self._all.values(), key=lambda each: each.used))
        made = SignIn(digest(cookie), digest(page_key), uid, name, role, now, now, proxy_user)
        self._all[made.cookie] = made
        self._save()
        return cookie, page_key, made

    def find(self, cookie: str, page_key: str) -> SignIn | None:
        """By both halves. It counts as used."""
        found = self._all.get(digest(cookie)) if cookie else None
        if found is None or not hmac.compare_digest(found.page_key, digest(page_key)):
            return None
        if self._is_over(found):
            self.end(found)
            return None
        found.used = self._clock()
        if found.used - self._saved > _SAVE_EVERY_S:
            self._save()
        return found

    def is_live(self, one: SignIn) -> bool:
        return self._all.get(one.cookie) is one and not self._is_over(one)

    def end(self, one: SignIn) -> None:
        self._all.pop(one.cookie, None)
        one.end_streams()
        self._save()

    def of(self, uid: int | None) -> list[SignIn]:
        """Of this person; None: of all."""
        self._expire()
        return [each for each in self._all.values() if uid is None or each.uid == uid]

    def end_all_streams(self) -> None:
        for each in self._all.values():
            each.end_streams()

    def _is_over(self, one: SignIn) -> bool:
        now = self._clock()
        # A page that watches uses it; a clock that was set back does not make it last.
        return not one.made - 60 <= now < one.made + self._absolute_s or (now - one.used > self._idle_s and not one.streams)

    def _expire(self) -> None:
        for each in [each for each in self._all.values() if self._is_over(each)]:
            self.end(each)

    # ---- the file ----

    def _load(self) -> None:
        try:
            for one in json.loads(self._file.read_text()):
                made = SignIn(**one)
                self._all[made.cookie] = made
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError):
            self._all.clear()  # whoever had signed in does so again
        self._expire()

    def _save(self) -> None:
        self._saved = self._clock()
        kept = [{field.name: getattr(each, field.name) for field in dataclasses.fields(each) if field.name != "streams"}
                for each in self._all.values()]  # fmt: skip
        temporary = self._file.with_name(f".{self._file.name}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(kept, file)
        temporary.rename(self._file)
