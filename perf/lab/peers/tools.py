# The packaged peers: how each is served and called, with the commands of their Debian packages.
#
# Data always goes from end a to end b. A peer's servers run from start() to stop(), through all rounds; copy()
# is what the clock is on.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import shutil
import subprocess

from harness.system import wait_until

from ..errors import MISSING, LabError
from ..stopwatch import Running
from .ends import ADDRESSES

_A, _B = ADDRESSES
_START_DEADLINE_S = 20


class Peer:
    """file: it moves files (a ceiling does not); tcp: it is run with each congestion control."""

    name = ""
    packages = ()
    file = True
    tcp = True

    def __init__(self, ends, folder):
        self.ends = ends
        self.folder = pathlib.Path(folder)
        self.servers = []

    def start(self):
        """Servers; their configuration lies in self.folder, which is there for this peer alone."""

    def copy(self, source, target, timeout_s, after):
        """Moves source to target and returns the Finished of the client; `after` is within its time."""
        return self.client(0, self.command(source, target)).end(timeout_s, after)

    def command(self, source, target):
        raise NotImplementedError

    def stop(self):
        while self.servers:
            self.servers.pop().stop()

    # ---- for the peers below --------------------------------------------------------------------

    def client(self, side, command, **options):
        return Running([*self.ends.prefix(self.name, side), *command], **options)

    def serve(self, side, command, port, kind="tcp", environment=None):
        """Starts a server and waits until its port is open."""
        program = shutil.which(command[0])
        if program is None:
            raise LabError(f"{command[0]}: not installed; apt-get install {' '.join(self.packages)}", MISSING)
        server = self.client(side, [program, *command[1:]], environment=environment)
        self.servers.append(server)

        def ready():
            if server.ended():
                self.servers.remove(server)
                raise LabError(f"{self.name}: its server ended at once: {server.stop().reason()}")
            return self.ends.listening(side, port, kind)

        wait_until(ready, _START_DEADLINE_S, f"{self.name}: its server listens on port {port}")
        return server

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path


class GridFtp(Peer):
    """Stream mode over one connection; with `streams`, extended block mode over so many."""

    packages = ("globus-gridftp-server-progs", "globus-gass-copy-progs")
    port = 2811
    streams = 0
    name = "gridftp"

    def start(self):
        environment = {**os.environ, "GLOBUS_HOSTNAME": "pb"}
        # root is not allowed as the anonymous user
        self.serve(1, ["globus-gridftp-server", "-aa", "-anonymous-user", "nobody", "-p", str(self.port),
                       "-control-interface", "pb", "-data-interface", "pb", "-no-detach", "-c", "/dev/null"],
                   self.port, environment=environment)  # fmt: skip

    def copy(self, source, target, timeout_s, after):
        return self.copy_with(["-vb", *(["-fast", "-p", str(self.streams)] if self.streams else [])], source, target, timeout_s, after)

    def copy_with(self, options, source, target, timeout_s, after):
        command = ["globus-url-copy", "-nodcau", *options, f"file://{source}", f"ftp://pb:{self.port}{target}"]
        environment = {**os.environ, "GLOBUS_HOSTNAME": "pa"}
        return self.client(0, command, environment=environment).end(timeout_s, after)


class GridFtpStreams(GridFtp):
    name = "gridftp-4-streams"
    streams = 4
    port = 2812


class Rsync(Peer):
    name = "rsync"
    packages = ("rsync",)

    def start(self):
        root = self.folder.parent
        config = self.write("rsyncd.conf", f"use chroot = no\nuid = root\ngid = root\n"
                            f"pid file = {self.folder}/rsyncd.pid\nlog file = {self.folder}/rsyncd.log\n"
                            f"[t]\npath = {root}\nread only = no\n")  # fmt: skip
        self._root = root
        self.serve(1, ["rsync", "--daemon", "--no-detach", f"--config={config}", "--port=8730", f"--address={_B}"],
                   8730)  # fmt: skip

    def command(self, source, target):
        # --ignore-times: size and time would tell it that there is nothing to do.
        there = target.relative_to(self._root)
        return ["rsync", "-W", "--inplace", "--ignore-times", source, f"rsync://{_B}:8730/t/{there}"]


class Scp(Peer):
    name = "scp"
    packages = ("openssh-server", "openssh-client")

    def start(self):
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key)], check=True)
        shutil.copy(self.folder / "user_key.pub", self.folder / "authorized_keys")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)  # where it drops privileges; its package makes it at boot
        config = self.write("sshd_config", f"""Port 2222
ListenAddress {_B}
HostKey {self.folder}/host_key
PidFile {self.folder}/sshd.pid
AuthorizedKeysFile {self.folder}/authorized_keys
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
Subsystem sftp internal-sftp
""")
        self._config = self.write("ssh_config", f"""Host *
Port 2222
User root
IdentityFile {self.folder}/user_key
IdentitiesOnly yes
StrictHostKeyChecking no
UserKnownHostsFile {self.folder}/known_hosts
BatchMode yes
""")
        self.serve(1, ["/usr/sbin/sshd", "-D", "-e", "-f", str(config)], 2222)

    def command(self, source, target):
        return ["scp", "-q", "-F", self._config, "-c", "aes128-gcm@openssh.com", source, f"{_B}:{target}"]


class Socat(Peer):
    name = "socat"
    packages = ("socat",)

    def copy(self, source, target, timeout_s, after):
        sending = ["socat", "-u", "-b", "1048576", f"OPEN:{source}", f"TCP:{_B}:5001"]
        return self.through(sending, f"OPEN:{target},creat,trunc", timeout_s, after)

    def through(self, sending, writes, timeout_s, after):
        """`writes`: what the listening end does with what comes, in socat's words."""
        server = self.serve(1, ["socat", "-u", "-b", "1048576", "TCP-LISTEN:5001,reuseaddr", writes], 5001)

        def all_written():
            # The client ends when it has sent; the file is whole when the server has.
            server.ended(timeout_s)
            after()

        try:
            return self.client(0, sending).end(timeout_s, all_written)
        finally:
            self.stop()


class Http(Peer):
    """nginx with sendfile at end a; curl fetches."""

    name = "nginx-curl"
    packages = ("nginx-light", "curl")

    def start(self):
        config = self.write("nginx.conf", f"""user root;
daemon off;
worker_processes 1;
pid {self.folder}/nginx.pid;
error_log {self.folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  sendfile on;
  client_body_temp_path {self.folder}/body;
  proxy_temp_path {self.folder}/proxy;
  fastcgi_temp_path {self.folder}/fastcgi;
  uwsgi_temp_path {self.folder}/uwsgi;
  scgi_temp_path {self.folder}/scgi;
  server {{ listen {_A}:8080; root {self.folder.parent}; }}
}}
""")
        self.serve(0, ["nginx", "-p", str(self.folder), "-e", str(self.folder / "error.log"), "-c", str(config)], 8080)

    def copy(self, source, target, timeout_s, after):
        there = source.relative_to(self.folder.parent)
        command = ["curl", "-sS", "--fail", "-o", target, f"http://{_A}:8080/{there}"]
        return self.client(1, command).end(timeout_s, after)


class Uftp(Peer):
    """Its own UDP protocol, unthrottled. About two seconds of each run are announcing and finishing."""

    name = "uftp"
    packages = ("uftp",)
    tcp = False

    def copy(self, source, target, timeout_s, after):
        # One daemon for each folder that it may write to, alone in the namespace while it serves.
        self.serve(1, ["uftpd", "-d", "-I", "vb", "-t", "-B", "104857600", "-D", str(target.parent), "-L",
                       str(self.folder / "uftpd.log")], 1044, kind="udp")  # fmt: skip
        command = ["uftp", "-U", "0x01020304", "-I", "va", "-B", "104857600", "-b", "8800", "-R", "-1", "-M", _B, "-D",
                   target.name, source]  # fmt: skip
        try:
            return self.client(0, command).end(timeout_s, after)
        finally:
            self.stop()


class Xrootd(Peer):
    name = "xrootd"
    packages = ("xrootd-server", "xrootd-client")

    def start(self):
        self.folder.chmod(0o777)
        root = self.folder.parent
        config = self.write("xrootd.cfg", f"xrd.port 10941\nall.export {root}\nall.adminpath {self.folder}\n"
                                          f"all.pidpath {self.folder}\n")  # fmt: skip
        # It refuses to be root.
        self.serve(1, ["xrootd", "-R", "xrootd", "-c", str(config), "-n", "t", "-l", str(self.folder / "xrootd.log")],
                   10941)  # fmt: skip

    def command(self, source, target):
        return ["xrdcp", "-f", "-s", source, f"root://{_B}:10941/{target}"]


FILE_PEERS = (GridFtp, GridFtpStreams, Rsync, Scp, Socat, Http, Uftp, Xrootd)
