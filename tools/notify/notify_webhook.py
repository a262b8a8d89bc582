#!/usr/bin/python3
# Tells a web service of the end of a session: an example of a program for `sluice session events --exec` and `--notify`.
#
# SLUICE_WEBHOOK_URL: where the event is posted. SLUICE_WEBHOOK_SECRET, or SLUICE_WEBHOOK_SECRET_FILE: what both know.
# The header Sluice-Signature is "t=SECONDS,v1=HEX": HMAC-SHA256 of the secret over SECONDS, a dot and the body. Whoever
# receives it computes the same, compares in constant time, refuses a time that is minutes away, and remembers
# Sluice-Delivery for that long: an event can come twice if a host dies just after it was told.
# SPDX-License-Identifier: Apache-2.0
import hashlib
import hmac
import os
import pathlib
import sys
import time
import urllib.error
import urllib.request

TIMEOUT_S = 20  # less than --time-limit


def secret():
    file = os.environ.get("SLUICE_WEBHOOK_SECRET_FILE")
    text = pathlib.Path(file).read_text().strip() if file else os.environ.get("SLUICE_WEBHOOK_SECRET", "")
    if not text:
        sys.exit("notify_webhook: no secret; set SLUICE_WEBHOOK_SECRET or SLUICE_WEBHOOK_SECRET_FILE")
    return text.encode()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would become a GET without the event."""

    def redirect_request(self, *_arguments):
        return None


def main():
    url = os.environ.get("SLUICE_WEBHOOK_URL", "")
    if not url.startswith(("https://", "http://")):
        sys.exit("notify_webhook: SLUICE_WEBHOOK_URL is no https:// or http:// address")
    body, seconds = sys.stdin.buffer.read(), str(int(time.time()))
    signature = hmac.new(secret(), seconds.encode() + b"." + body, hashlib.sha256).hexdigest()
    request = urllib.request.Request(url, data=body, method="POST", headers={
        "Content-Type": "application/json",
        "Sluice-Delivery": f"{os.environ.get('SLUICE_SESSION', '')}/{os.environ.get('SLUICE_STATE', '')}",
        "Sluice-Signature": f"t={seconds},v1={signature}",
    })  # fmt: skip
    try:
        with urllib.request.build_opener(NoRedirect).open(request, timeout=TIMEOUT_S):
            pass
    except (OSError, urllib.error.URLError) as error:
        sys.exit(f"notify_webhook: {url}: {error}")  # not 0: it is told again


main()
