#!/usr/bin/python3
# Tells by mail of the end of a session: an example of a program for `sluice session events --exec` and `--notify`.
#
# SLUICE_MAIL_TO: one or more addresses, with commas. SLUICE_MAIL_FROM: who writes. SLUICE_MAIL_SERVER: HOST[:PORT] that
# takes the mail by SMTP; without it SLUICE_SENDMAIL (/usr/sbin/sendmail) does. Under sluice-notify.service a sendmail that
# needs rights of its own, such as Postfix's, is refused them: give a server there.
# SPDX-License-Identifier: Apache-2.0
import email.message
import json
import os
import smtplib
import subprocess
import sys

TIMEOUT_S = 20  # less than --time-limit


def one_line(text):
    return " ".join(text.split())


def message(event):
    mail = email.message.EmailMessage()
    way = "from" if event["direction"].endswith(("get", "receive")) else "to"
    mail["Subject"] = one_line(f"Sluice: {event['state']}: session {event['session'][:8]} {way} {event['peer']}")
    mail["From"] = os.environ.get("SLUICE_MAIL_FROM", "sluice")
    mail["To"] = os.environ["SLUICE_MAIL_TO"]
    lines = [f"Session {event['session']} is {event['state']}: {event['bytes_done']} of {event['bytes_total']} bytes."]
    if event["error_code"]:
        lines.append(f"Error {event['error_code']} ({event['error_name']}): {one_line(event['error'])}")
    lines.append(f"More: sluice session show {event['session']}")
    mail.set_content("\n".join(lines) + "\n")
    return mail


def main():
    if not os.environ.get("SLUICE_MAIL_TO"):
        sys.exit("notify_mail: no recipient; set SLUICE_MAIL_TO")
    mail = message(json.load(sys.stdin))
    server = os.environ.get("SLUICE_MAIL_SERVER")
    try:
        if server:
            with smtplib.SMTP(server, timeout=TIMEOUT_S) as connection:
                connection.send_message(mail)
        else:
            program = os.environ.get("SLUICE_SENDMAIL", "/usr/sbin/sendmail")
            subprocess.run([program, "-i", "-t"], input=bytes(mail), check=True, timeout=TIMEOUT_S)
    except (OSError, smtplib.SMTPException, subprocess.SubprocessError) as error:
        sys.exit(f"notify_mail: {error}")  # not 0: it is told again


main()
