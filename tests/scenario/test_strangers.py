"""Clients without permission, and malformed requests, get a clear answer and change nothing."""

import base64
import contextlib
import json
import random
import socket
import ssl
import struct
import time
import unittest

from harness import NAME, PATIENCE_SECONDS, TOKENS, UID, ScenarioTest


class WebSocketClient:
    """Just enough of RFC 6455 to send anything to /v1/learner."""

    def __init__(self, job, token=TOKENS["learner"]):
        context = ssl.create_default_context(cafile=job.secret / "ca.crt")
        plain = socket.create_connection(("127.0.0.1", job.port), 10)
        self.socket = context.wrap_socket(plain, server_hostname=NAME)
        key = base64.b64encode(bytes(range(16))).decode()
        self.socket.sendall(
            f"GET /v1/learner HTTP/1.1\r\nHost: {NAME}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.socket.recv(1)
        self.status = int(answer.split()[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, payload, opcode=1):
        payload = payload.encode() if isinstance(payload, str) else payload
        mask = b"\x1f\x8a\x03\xc4"
        size = len(payload)
        head = bytes([0x80 | opcode])
        head += bytes([0x80 | size]) if size < 126 else (
            bytes([0xFE]) + struct.pack(">H", size) if size < 65536 else bytes([0xFF]) + struct.pack(">Q", size))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        try:
            self.socket.sendall(head + mask + masked)
        except OSError:
            pass  # closed before all of it was read

    def closed(self):
        """Whether the server closes the WebSocket or the connection within the socket's timeout."""
        with self.socket:
            try:
                while heard := self.socket.recv(4096):
                    if heard[0] & 0x0F == 8:
                        break
            except TimeoutError:
                return False
            except OSError:
                pass
            return True


class StrangersTest(ScenarioTest):
    def setUp(self):
        self.job = self.make_job()
        self.job.start_coordinator()

    def assert_unharmed(self):
        self.assertTrue(self.job.coordinator.running())
        self.assertEqual(self.job.healthy(), (200, "ok\n"))
        self.assertEqual(self.job.progress()["state"], "Waiting")

    def test_tokens(self):
        plan = json.dumps({"leaseTransitions": 1, "sequence": 1, "learners": []})
        for method, path, token, expected in [
            ("PUT", "/v1/plan", None, 401),
            ("PUT", "/v1/plan", "guess", 401),
            ("PUT", "/v1/plan", TOKENS["operator"][:-1], 401),
            ("PUT", "/v1/plan", TOKENS["learner"], 403),
            ("GET", "/v1/progress", None, 401),
            ("GET", "/v1/progress", TOKENS["learner"], 200),
            ("GET", "/v1/progress", TOKENS["operator"], 200),
            ("GET", "/v1/learner", TOKENS["operator"], 403),
            ("GET", "/v1/learner", TOKENS["learner"], 426),
        ]:
            with self.subTest(method=method, path=path, token=token):
                self.assertEqual(self.job.request(method, path, plan, token)[0], expected)
        self.assertIsNone(self.job.progress().get("planAccepted"))
        for token in ("guess", TOKENS["operator"]):
            with WebSocketClient(self.job, token) as client:
                self.assertIn(client.status, (401, 403))
        self.assert_unharmed()

    def test_plans(self):
        good = {"leaseTransitions": 2, "sequence": 5, "learners": []}
        one = {"name": "toy-0", "podUid": "u", "state": "Wanted"}
        for body, expected, word in [
            ("", 400, ""),
            ("{", 400, ""),
            ("[]", 400, ""),
            ('"\\ud800"', 400, ""),
            (b"\xff\xfe", 400, ""),
            ("[" * 100000, 400, ""),
            ({**good, "sequence": -1}, 400, "sequence"),
            ({**good, "sequence": "five"}, 400, "sequence"),
            ({**good, "sequence": 1e300}, 400, "sequence"),
            ({**good, "leaseTransitions": None}, 400, "leaseTransitions"),
            ({**good, "learners": {}}, 400, "learners"),
            ({**good, "learners": [one, 7]}, 400, "learners"),
            ({**good, "learners": [{**one, "state": "wanted"}]}, 400, "state"),
            ({**good, "learners": [{**one, "name": ""}]}, 400, "name"),
            (" " * (1 << 20) + "{}", 413, ""),
            (good, 200, "planAccepted"),
            (good, 200, "planAccepted"),  # the same again
            ({**good, "sequence": 4}, 409, ""),
            ({**good, "leaseTransitions": 1, "sequence": 9}, 409, ""),
        ]:
            text = json.dumps(body) if isinstance(body, dict) else body
            with self.subTest(body=text[:60]):
                status, answer = self.job.request("PUT", "/v1/plan", text)
                self.assertEqual(status, expected, answer)
                self.assertIn(word, answer)
        self.assert_unharmed()

    def test_messages(self):
        stranger = {"name": "toy-9", "podUid": "u", "nonce": "1"}
        hello = {"type": "hello", "protocol": 1, "learner": stranger, "ranks": 1, "address": "127.0.0.1:1",
                 "fingerprint": {}, "membership": None, "appliedTicks": 0, "hasState": False,
                 "leaving": False, "done": False}
        for text in ["", "{", "null", "[1]", '{"type": "helo"}', '{"type": 5}', "[" * 100000,
                     json.dumps({**hello, "learner": "toy-9"}), json.dumps({**hello, "appliedTicks": -1}),
                     json.dumps({**hello, "membership": {"id": "x.y", "members": []}}),
                     json.dumps({"type": "prepared", "membership": "1.1"}),  # no hello before it
                     json.dumps({**hello, "padding": "x" * (256 << 10)})]:
            with self.subTest(text=text[:60]):
                client = WebSocketClient(self.job)
                self.assertEqual(client.status, 101)
                client.send(text)
                self.assertTrue(client.closed())
        for opcode in (2, 3, 11):  # binary, and two that do not exist
            with self.subTest(opcode=opcode):
                client = WebSocketClient(self.job)
                client.send(b"\x00\x01", opcode)
                self.assertTrue(client.closed())
        self.assert_unharmed()

    def test_bytes(self):
        for port in (self.job.port, self.job.status_port):
            # A prefix of a possible request is cut off after a timeout: see http_server_test.
            for noise in (b"\x00" * 1000, b"GET / HTTP/9.9\r\n\r\n", b"\xff" + random.Random(1).randbytes(5000)):
                with self.subTest(port=port, noise=noise[:10]), \
                        socket.create_connection(("127.0.0.1", port), 20) as raw:
                    try:
                        raw.sendall(noise)
                        while raw.recv(4096):
                            pass
                    except TimeoutError:
                        self.fail("left open")
                    except OSError:
                        pass
        self.assertEqual(self.job.status("/v1/plan")[0], 404, "the plain port only reads")
        self.assert_unharmed()

    def test_a_flood_of_connections_is_not_in_the_way_of_probes(self):
        with contextlib.ExitStack() as flood:
            for _ in range(500):
                flood.enter_context(socket.create_connection(("127.0.0.1", self.job.status_port), 20))
            began = time.monotonic()
            self.assertEqual(self.job.healthy(), (200, "ok\n"))
            self.assertLess(time.monotonic() - began, 5, "kubelet's timeout")
            self.assertEqual(self.job.progress()["state"], "Waiting")
        # The connections have ended, so that scrapers can connect again.
        self.job.wait("the plain port serves", lambda: self.job.status("/progress")[0] == 200)

    def test_metrics_tell_soon_what_was_counted(self):
        messages = 'pliant_coordinator_refused_messages_total{job_name="toy",job_namespace="test"} '

        def count():
            status, text = self.job.status("/metrics")
            self.assertEqual(status, 200)
            return next(line for line in text.splitlines() if line.startswith(messages)).removeprefix(messages)

        self.job.wait("nothing is counted yet", lambda: count() == "0")
        client = WebSocketClient(self.job)
        client.send("nonsense")
        self.assertTrue(client.closed())
        self.job.wait("it is counted", lambda: count() == "1")

    def test_a_learner_with_a_wrong_token_reports_the_refusal(self):
        wrong = self.job.folder / "wrong-token"
        wrong.write_text("guess")
        learner = self.job.start_learner(0, PLIANT_TOKEN_FILE=str(wrong))
        self.job.plan([learner])
        self.job.wait("the learner says so", lambda: "the token is not valid" in learner.log.read_text())
        self.assertEqual(self.job.progress()["learners"], [])
        learner.terminate()
        self.assertEqual(learner.exit_code(), 0, "it has nothing to finish")

    def test_a_learner_tells_nothing_to_another_jobs_coordinator(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.job.secret / "tls.crt", self.job.secret / "tls.key")
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE_SECONDS)

            def hear_from(number, uid):
                address = f"127.0.0.1:{server.getsockname()[1]}"
                learner = self.job.start_learner(number, PLIANT_COORDINATOR=address, PLIANT_JOB_UID=uid)
                with server.accept()[0] as plain:
                    plain.settimeout(PATIENCE_SECONDS)
                    try:
                        with context.wrap_socket(plain, server_side=True) as client:
                            heard = b""
                            while b"\r\n\r\n" not in heard and (more := client.recv(4096)):
                                heard += more
                            return heard.decode()
                    except ssl.SSLError as error:
                        return error.reason
                    finally:
                        learner.kill()

            self.assertIn("CERTIFICATE", hear_from(0, UID.replace("1", "2")))
            heard = hear_from(1, UID)
            self.assertTrue(heard.startswith("GET /v1/learner"), heard)
            self.assertIn(TOKENS["learner"], heard)

    def test_a_stranger_with_the_token_alone_is_refused(self):
        member = self.job.start_learner(0)
        self.job.plan([member])
        self.job.wait_for_members([member])
        stranger = self.job.start_learner(1, PLIANT_PEER_KEY_FILE=str(self.job.secret / "learner-token"))
        self.job.plan([member, stranger])
        # The coordinator accepts it, its peer does not.
        self.job.wait("it is turned away",
                      lambda: member.logged("connection refused") or stranger.logged("connection refused"))
        self.job.wait_for_step((self.job.progress().get("step") or 0) + 5)
        self.assertEqual(self.job.progress()["membership"]["learners"], [member.name])


if __name__ == "__main__":
    unittest.main(verbosity=2)
