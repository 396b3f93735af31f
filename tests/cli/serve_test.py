"""The what-if page's server: what it answers, and what it refuses."""

import concurrent.futures
import json
import random
import signal
import socket
import time
import unittest
import urllib.parse

from page_server import PageServer, received_from
from paceline import EXAMPLES, CommandTest, run

JOB = {"model": "resnet50", "cluster": "jizhi-p40", "ranks": "64"}


def target(path, **options):
    return f"{path}?{urllib.parse.urlencode({name.replace('_', '-'): value for name, value in options.items()})}"


def words(**options):
    return [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]


class ServedTest(CommandTest):
    """Tests of one server, which must answer to the end."""

    @classmethod
    def setUpClass(cls):
        cls.server = PageServer()

    @classmethod
    def tearDownClass(cls):
        code, rest = cls.server.close()
        assert (code, rest) == (0, ""), (code, rest)  # no log beside the first line

    def answered(self, path, **options):
        status, headers, text = self.server.get(target(path, **options))
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"), text)
        return text

    def problem(self, answer, status):
        """The one line that says why a request is refused."""
        self.assertEqual(answer[0], status, answer)
        error = json.loads(answer[2])["error"]
        self.assertNotIn("\n", error)
        return error


class Numbers(ServedTest):
    """What is served is what the command prints, byte by byte."""

    CASES = (
        {},
        {"batch": "32", "precision": "fp32"},
        {"theta": "4 MiB", "eta": "256 KiB", "group": "8"},
        {"what_if": "bandwidth=2+latency=0.5+compute=1.25"},
        {"nic": "100 Gbit/s"},
        {"spread": "normal:0.1", "slow_rank": "0=1.5", "iterations": "50"},
        {"ranks": "1000", "model": "bert-large", "batch": "4"},
        {"cluster": "sony-abci", "ranks": "100"},
    )

    def test_of_predict_are_the_command_s(self):
        for options in self.CASES:
            with self.subTest(**options):
                options = {**JOB, **options}
                self.assertEqual(self.answered("/predict", **options), self.done(run("predict", *words(**options), "--json")))

    def test_of_timeline_are_the_command_s(self):
        for options in self.CASES:
            with self.subTest(**options):
                options = {**JOB, **options}
                self.done(run("predict", *words(**options), "--timeline", str(self.folder / "t.json")))
                self.assertEqual(self.answered("/timeline", **options), (self.folder / "t.json").read_text())

    def test_of_scale_are_the_command_s(self):
        for options in ({"ranks": "8-64"}, {"ranks": "8,24", "batch": "16"}, {"ranks": "16-100", "what_if": "latency=4"},
                        {"cluster": "paisoar-25g", "ranks": "1-128"}):
            with self.subTest(**options):
                options = {**JOB, **options}
                self.assertEqual(self.answered("/scale", **options), self.done(run("scale", *words(**options), "--json")))

    def test_are_the_same_however_often_they_are_asked(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            options = [{**JOB, "batch": str(16 + i % 4)} for i in range(64)]
            texts = list(pool.map(lambda o: self.answered("/predict", **o), options))
        for option, text in zip(options, texts):
            self.assertEqual(text, texts[int(option["batch"]) - 16])

    def test_of_random_jobs_are_the_command_s(self):
        draw = random.Random(20)
        for _ in range(8):
            options = {"model": draw.choice(["alexnet", "resnet50", "vgg16", "bert-base"]),
                       "cluster": draw.choice(["jizhi-p40", "pfn-mn1", "aws-p3-16xlarge"]), "ranks": str(draw.randint(1, 200)),
                       "batch": str(draw.randint(1, 200)), "precision": draw.choice(["fp32", "mixed"]),
                       "what_if": f"bandwidth={draw.uniform(0.1, 10):.3g}+latency={draw.uniform(0.1, 10):.3g}"}
            with self.subTest(**options):
                result = run("predict", *words(**options), "--json")
                if result.returncode == 2:  # what the device's memory does not hold
                    self.assertIn("does not fit", result.stderr)
                    status, _, text = self.server.get(target("/predict", **options))
                    self.assertEqual((status, f"paceline: {json.loads(text)['error']}\n"), (400, result.stderr))
                    continue
                self.assertEqual(self.answered("/predict", **options), self.done(result))


class Answers(ServedTest):
    def test_have_headers_that_browsers_heed(self):
        for path in ("/", "/page.css", "/page.js", "/choices", target("/predict", **JOB), "/nowhere"):
            _, headers, _ = self.server.get(path)
            with self.subTest(path=path):
                self.assertIn("default-src 'none'; script-src 'self'", headers["Content-Security-Policy"])
                self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
                self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
                self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
                self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_to_head_have_no_body(self):
        for path in ("/", target("/predict", **JOB)):
            status, headers, text = self.server.get(path, method="HEAD")
            self.assertEqual((status, text), (200, ""))
            self.assertEqual(int(headers["Content-Length"]), len(self.server.get(path)[2].encode()))

    def test_come_several_on_one_connection(self):
        request = b"GET /choices HTTP/1.1\r\nHost: localhost\r\n\r\n"
        last = b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        received = self.server.raw(3 * request + last)
        self.assertEqual((received.count(b"HTTP/1.1 200 OK"), received.count(b"HTTP/1.1 404")), (3, 1))

    def test_name_the_catalogue(self):
        choices = json.loads(self.answered("/choices"))
        catalog = json.loads(self.done(run("show", "catalog", "--json")))
        self.assertEqual([c["name"] for c in choices["clusters"]], [c["name"] for c in catalog["clusters"]])
        self.assertEqual([c["name"] for c in choices["models"]], [c["name"] for c in catalog["networks"]])

    def test_of_own_files_are_the_command_s(self):
        cluster, network = EXAMPLES / "two-cores.yaml", EXAMPLES / "tiny-net.yaml"
        server = PageServer("--cluster", str(cluster), "--model", str(network))
        self.addCleanup(server.close)
        choices = json.loads(server.get("/choices")[2])
        for kind, path in (("clusters", cluster), ("models", network)):
            self.assertEqual([(c["name"], c["own"]) for c in choices[kind] if "own" in c], [(str(path), True)])
            self.assertEqual(choices[kind][0]["name"], str(path))
        for options in ({"model": str(network), "cluster": str(cluster), "ranks": "2", "batch": "8"}, {"model": "alexnet", "cluster": str(cluster), "ranks": "2", "batch": "8"}):
            status, _, text = server.get(target("/predict", **options))
            self.assertEqual((status, text), (200, self.done(run("predict", *words(**options), "--json"))))
        self.assertEqual(server.get(target("/scale", model=str(network), cluster=str(cluster), ranks="1,2", batch="8"))[0], 200)
        self.problem(server.get(target("/predict", model=str(EXAMPLES / "bert-phases.yaml"), cluster=str(cluster), ranks="2")), 400)

    def test_of_files_that_are_none_are_refused(self):
        self.refused(run("serve", "--cluster", "h200-ndr"), "paceline: --cluster: 'h200-ndr' is no file; the page has all of the catalogue")
        self.refused(run("serve", "--cluster", "missing.yaml"), "missing.yaml")
        self.refused(run("serve", "--model", str(EXAMPLES / "two-cores.yaml")), "two-cores.yaml")

    def test_to_wrong_values_are_the_command_s_line(self):
        for options in ({"ranks": "5000"}, {"batch": "0"}, {"theta": "4"}, {"group": "7"}, {"what_if": "bandwidth=-1"}, {"what_if": "plan=x"},
                        {"spread": "normal:9"}, {"precision": "fp8"}, {"model": "resnet5"}, {"cluster": "jizhi"}):
            with self.subTest(**options):
                options = {**JOB, **options}
                said = self.problem(self.server.get(target("/predict", **options)), 400)
                self.assertEqual(f"paceline: {said}\n", run("predict", *words(**options)).stderr)

    def test_to_what_takes_long_say_so(self):
        options = {**JOB, "ranks": "2048", "spread": "normal:0.1", "iterations": "1000000"}
        self.assertIn("--iterations", self.problem(self.server.get(target("/predict", **options)), 400))


class Hostile(ServedTest):
    def tearDown(self):
        self.assertEqual(self.server.get("/choices")[0], 200, "the server does not answer any more")

    def test_paths_lead_nowhere(self):
        for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/page.css/../../../etc/passwd", "//etc/passwd",
                     "/page.css%00", "/.git/config", "/predict/", "/PREDICT", "/%", "/a" * 500):
            with self.subTest(path=path):
                self.problem(self.server.get(path), 404)

    def test_values_name_no_file(self):
        (self.folder / "net.yaml").write_text("network: hidden\n")
        for name in ("model", "cluster", "profile", "placement", "plan", "nic", "spread"):
            for value in ("/etc/passwd", "../../etc/passwd", str(self.folder / "net.yaml"), "x.yaml", "file:/etc/passwd", "/dev/zero", "resnet50\n"):
                with self.subTest(name=name, value=value):
                    said = self.problem(self.server.get(target("/predict", **{**JOB, name: value})), 400)
                    self.assertNotIn("root", said)
                    self.assertNotIn("hidden", said)

    def test_queries_are_checked(self):
        for query in ("ranks", "ranks=", "ranks=1&ranks=2", "ranks=%", "ranks=%zz", "ranks=%00", "strategy=ring", "engine=simgrid", "ranks=1%0d%0aX:1"):
            with self.subTest(query=query):
                self.problem(self.server.get("/predict?" + query), 400)
        self.problem(self.server.get("/predict?" + "a" * 3000), 414)

    def test_other_methods_are_refused(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "LOCK"):
            with self.subTest(method=method):
                status, headers, _ = self.server.get("/", method=method)
                self.assertEqual((status, headers.get("Allow")), (405, "GET, HEAD"))
        self.assertTrue(self.server.raw(b"CONNECT evil:80 HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 405"))

    def test_other_hosts_are_refused(self):
        for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "[::1", ":", "127.1", "a b"):
            with self.subTest(host=host):
                received = self.server.raw(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                self.assertRegex(received[:12], rb"HTTP/1.1 (421|400)")
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80", "127.0.0.1:99999"):
            with self.subTest(host=host):
                self.assertEqual(self.server.get("/", headers={"Host": host})[0], 200)
        for headers in (b"", b"Host: localhost\r\nHost: localhost\r\n"):
            self.assertTrue(self.server.raw(b"GET / HTTP/1.1\r\n" + headers + b"\r\n").startswith(b"HTTP/1.1 400"))

    def test_pages_of_others_read_nothing(self):
        cross = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
        self.problem(self.server.get(target("/predict", **JOB), headers=cross), 403)
        self.assertEqual(self.server.get("/", headers={**cross, "Sec-Fetch-Mode": "navigate"})[0], 200)

    def test_what_is_no_http_is_refused(self):
        for data in (b"\0\0\0\0\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\nA\0: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nA: \0\r\n\r\n", b"GET / HTTP/1.1\r\n : \r\n\r\n",
                     b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", bytes(range(256)) * 20):
            with self.subTest(data=data[:40]):
                self.assertRegex(self.server.raw(data + b"\r\n\r\n")[:12], rb"HTTP/1.1 4\d\d")

    def test_random_bytes_end_in_a_refusal(self):
        draw = random.Random(2020)
        good = b"GET /predict?model=alexnet&cluster=jizhi-p40&ranks=8 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        for _ in range(200):
            data = bytearray(good)
            for _ in range(draw.randint(1, 8)):
                at = draw.randrange(len(data))
                kind = draw.randrange(3)
                if kind == 0:
                    data[at] = draw.randrange(256)
                elif kind == 1:
                    del data[at]
                else:
                    data.insert(at, draw.randrange(256))
            with socket.create_connection((self.server.host, self.server.port), timeout=60) as connection:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                received = received_from(connection)
                self.assertTrue(received == b"" or received.startswith(b"HTTP/1.1 "), data)

    def test_headers_and_bodies_are_short(self):
        for headers in (b"A: " + b"x" * 100_000 + b"\r\n", b"A: b\r\n" * 100_000, b"x" * 100_000):
            received = self.server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n")
            self.assertTrue(received.startswith(b"HTTP/1.1 431"), received[:100])
        self.assertTrue(self.server.raw(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 431"))
        for body in (b"Content-Length: 1000000000000\r\n\r\n" + b"x" * 1_000_000, b"Content-Length: 5\r\n\r\nhello",
                     b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", b"Content-Length: -1\r\n\r\n",
                     b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"Content-Length: 99999999999999999999999999\r\n\r\n"):
            received = self.server.raw(b"POST /predict HTTP/1.1\r\nHost: localhost\r\n" + body)
            self.assertRegex(received[:12], rb"HTTP/1.1 4(00|05|13)")

    def test_slow_clients_keep_nobody_waiting(self):
        slow = [socket.create_connection((self.server.host, self.server.port)) for _ in range(100)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        self.assertEqual(self.server.get(target("/predict", **JOB))[0], 200)
        end = time.monotonic() + 60
        while slow and time.monotonic() < end:
            for connection in list(slow):
                try:
                    connection.sendall(b"x")  # one byte after the other
                except OSError:
                    connection.close()
                    slow.remove(connection)
            time.sleep(0.5)
        self.assertEqual(slow, [], "a client that sends byte by byte keeps its connection")

    def test_connections_have_a_limit(self):
        before = self.server.files()
        many = [socket.create_connection((self.server.host, self.server.port)) for _ in range(400)]
        time.sleep(0.5)
        self.assertLessEqual(self.server.files() - before, 256 + 2)
        for connection in many:
            connection.close()
        end = time.monotonic() + 30
        while self.server.files() > before + 2 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertLessEqual(self.server.files(), before + 2)

    def test_memory_does_not_grow(self):
        def load(begin):
            for i in range(begin, begin + 150):
                self.server.get(target("/predict", model="alexnet", cluster="jizhi-p40", ranks="8", batch=str(i)))
                self.server.get("/" + "x" * 4000)
                self.server.raw(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 2000)
        load(1)
        before = self.server.memory()
        load(1)  # the same again
        self.assertLess(self.server.memory() - before, 16 << 20)

    def test_who_goes_away_is_forgotten(self):
        before = self.server.files()
        request = (target("/scale", model="gpt2-xl", cluster="h200-ndr", ranks="1-65536")).encode()
        for _ in range(5):
            with socket.create_connection((self.server.host, self.server.port)) as connection:
                connection.sendall(b"GET " + request + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(self.server.get(target("/predict", **{**JOB, "batch": "77"}))[0], 200)
        end = time.monotonic() + 30
        while self.server.files() > before and time.monotonic() < end:
            time.sleep(0.1)
        self.assertLessEqual(self.server.files(), before)


class Start(CommandTest):
    def test_says_one_line_and_ends_by_a_signal(self):
        for by in (signal.SIGINT, signal.SIGTERM):
            server = PageServer()
            self.assertRegex(server.line, r"^what-if page at http://127\.0\.0\.1:\d+/ until Ctrl-C or SIGTERM\n$")
            self.assertEqual(server.get("/")[0], 200)
            with socket.create_connection((server.host, server.port)) as waiting:
                waiting.sendall(b"GET ")
                self.assertEqual(server.close(by), (0, ""))

    def test_ends_while_a_prediction_is_on_its_way(self):
        server = PageServer()
        with socket.create_connection((server.host, server.port)) as waiting:
            waiting.sendall(b"GET /scale?model=gpt2-xl&cluster=h200-ndr HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.3)
            self.assertEqual(server.close(), (0, ""))

    def test_other_addresses_are_refused_unless_asked_for(self):
        for address in ("0.0.0.0", "::", "192.0.2.1"):
            self.refused(run("serve", "--port", "0", "--listen", address), "--listen", "add --allow-remote")
        self.refused(run("serve", "--listen", "example.org"), "--listen", "is no address")
        self.refused(run("serve", "--port", "70000"), "--port")
        self.refused(run("serve", "--memory", "5"), "--memory")
        server = PageServer("--listen", "0.0.0.0", "--allow-remote", "--name", "paceline.example")
        server.host = "127.0.0.1"
        self.assertEqual(server.get("/", headers={"Host": "paceline.example"})[0], 200)
        self.assertEqual(server.get("/", headers={"Host": "evil.example"})[0], 421)
        self.assertEqual(server.close(), (0, ""))

    def test_a_port_in_use_is_said(self):
        server = PageServer()
        self.addCleanup(server.close)
        result = run("serve", "--port", str(server.port))
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"cannot listen at 127.0.0.1, port {server.port}: Address already in use", result.stderr)

    def test_a_request_that_needs_too_much_memory_is_refused(self):
        server = PageServer("--memory", "64 MiB")
        status, _, text = server.get(target("/predict", model="gpt2-xl", cluster="h200-ndr", ranks="65535"))
        self.assertEqual((status, json.loads(text)["error"]), (503, "this takes more memory than the server may have: ask the command"))
        self.assertEqual(server.get("/choices")[0], 200)
        self.assertEqual(server.close(), (0, ""))


if __name__ == "__main__":
    unittest.main()
