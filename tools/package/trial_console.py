# For trial.sh: asks the installed console as a page does, without a browser, and prints what it answers.
# SPDX-License-Identifier: Apache-2.0
import argparse
import http.client
import json
import socket
import sys

SOCKET = "/run/sluice-console.sock"
LIMIT_S = 60


class Local(http.client.HTTPConnection):
    """As a proxy on this host connects."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        self.sock.connect(SOCKET)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--link", help="as 'sluice console open' prints it")
    parser.add_argument("--proxied", help="as whom the proxy knows who is there")
    parser.add_argument("--path", help="where names are listed; without it the first export")
    parser.add_argument("calls", nargs="+", choices=["node", "names", "events", "doctor"])
    chosen = parser.parse_args()
    origin, _, secret = (chosen.link or "https://console.example/#sign-in=").partition("/#sign-in=")
    host = origin.split("//")[1]
    headers = {"Host": host, "Origin": origin, "Content-Type": "application/json"}
    if chosen.proxied:
        headers["X-Remote-User"] = chosen.proxied

    def ask(path, given):
        connection = http.client.HTTPConnection(host, timeout=LIMIT_S) if chosen.link else Local("console")
        connection.request("POST", f"/api/{path}", json.dumps(given), headers)
        response = connection.getresponse()
        if response.status != 200:
            sys.exit(f"{path}: {response.status} {response.read().decode()}")
        return response

    def listed(path):
        parts = [json.loads(line) for line in ask("names/list", {"node": "", "path": path}).read().splitlines()]
        assert parts.pop() == {"end": True}, parts
        return [row[0] for part in parts for row in part]

    signed_in = ask("sign-in", {"secret": secret} if secret else {})
    headers["Cookie"] = signed_in.getheader("set-cookie").split(";")[0]
    who = json.loads(signed_in.read())
    headers["X-Sluice-Key"] = who["key"]
    print(f"signed in as {who['name']}, {who['role']}")
    for call in chosen.calls:
        if call == "node":
            node = json.loads(ask("node", {}).read())
            print("node", node["name"], "peers", [peer["name"] for peer in node["peers"]], "dataplane", node["attached"])
        elif call == "names":
            path = chosen.path or listed("")[0]
            print("names in", path, listed(path))
        elif call == "doctor":
            checks = json.loads(ask("doctor", {}).read())["checks"]
            print("\n".join(f"  {level}  {check}: {text}" for level, check, text, _ in checks))
        else:
            print("events", ask("events", {}).readline().decode().strip())


if __name__ == "__main__":
    main()
