"""A what-if server of a test's own, and raw requests to it."""

import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess

from paceline import ENVIRONMENT, HANG_S, PACELINE


def received_from(connection):
    """All bytes until the other side closes or resets the connection."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass
    return received


class PageServer:
    """`paceline serve` at a free port, until close()."""

    def __init__(self, *words):
        self.process = subprocess.Popen([PACELINE, "serve", "--port", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.line = self.process.stdout.readline()
        found = re.search(r"http://(\S+):(\d+)/", self.line)
        if found is None:
            raise AssertionError(self.line + self.process.stderr.read())
        self.url, self.host, self.port = found[0], found[1].strip("[]"), int(found[2])

    def close(self, by=signal.SIGTERM):
        """The exit code, and all else that it has written."""
        self.process.send_signal(by)
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out + err

    def get(self, target, method="GET", headers=None):
        """The status, the headers and the text of an answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=HANG_S)
        try:
            connection.request(method, target, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def raw(self, data, wait_s=30):
        """What the server sends for these bytes until it closes."""
        with socket.create_connection((self.host, self.port), timeout=wait_s) as connection:
            try:
                connection.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has heard enough
            return received_from(connection)

    def memory(self):
        """Resident bytes of the server."""
        text = pathlib.Path(f"/proc/{self.process.pid}/statm").read_text()
        return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def files(self):
        """How many descriptors the server has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
