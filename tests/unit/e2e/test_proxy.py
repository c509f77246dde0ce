import dataclasses
import http.client
import http.server
import json
import threading
import time
import unittest

import builders
from story import bad_connection, behind_proxy, deadly_writes
from story.faulty_proxy import AFTER, BEFORE, Exchange, Failpoints, Handler, Mood, Server, Way, serve, write_of

PODS = "/api/v1/namespaces/demo/pods"
SERVICES = "/api/v1/namespaces/demo/services"
SECRETS = "/api/v1/namespaces/demo/secrets"
JOB = "/apis/pliant.dev/v1alpha1/namespaces/demo/elastictrainingjobs/one"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/pliant-system/leases/pliant-operator"
POD = json.dumps({"metadata": {"name": "one-0"}}).encode()


class WriteTest(unittest.TestCase):
    def test_a_write_has_the_same_name_when_it_is_made_again(self) -> None:
        def status(**fields: object) -> bytes:
            return json.dumps({"metadata": {"resourceVersion": str(fields)}, "status": fields}).encode()

        query = "?fieldManager=pliant-operator"
        self.assertEqual(write_of("POST", PODS + query, POD), f"POST {PODS}/one-#")
        self.assertEqual(write_of("PATCH", f"{PODS}/one-0{query}", b"{}"), f"PATCH {PODS}/one-0")
        for term in (1, 2):  # if an operator dies after it, the next one creates those of the next term
            secret = json.dumps({"metadata": {"name": f"one-coordinator-{term}"}}).encode()
            self.assertEqual(write_of("POST", SECRETS + query, secret), f"POST {SECRETS}/one-coordinator")
        running = write_of("PATCH", f"{JOB}/status", status(phase="Running", step=1))
        self.assertEqual(write_of("PATCH", f"{JOB}/status", status(phase="Running", step=2)), running)
        self.assertNotEqual(write_of("PATCH", f"{JOB}/status", status(phase="Resizing")), running)

    def test_a_request_that_changes_no_job_is_no_write(self) -> None:
        events = "/apis/events.k8s.io/v1/namespaces/demo/events"
        for method, target in (("GET", PODS), ("POST", f"{PODS}?dryRun=All"), ("PUT", LEASE), ("POST", events)):
            with self.subTest(target):
                self.assertIsNone(write_of(method, target, POD))


class FailpointsTest(unittest.TestCase):
    def test_both_sides_of_each_write_one_try_after_the_other(self) -> None:
        failpoints = Failpoints()
        self.assertEqual([failpoints.side(each, 2) for each in "ababa"], [BEFORE, BEFORE, AFTER, AFTER, None])

    def test_one_side_of_each_write_in_turn(self) -> None:
        failpoints = Failpoints()
        self.assertEqual([failpoints.side(each, 1) for each in "abacb"], [BEFORE, AFTER, None, BEFORE, None])

    def test_each_pod_is_another_write_when_it_was_made(self) -> None:
        failpoints = Failpoints()
        self.assertEqual([failpoints.side("p-#", 2) for _ in range(5)], [BEFORE, AFTER, BEFORE, AFTER, BEFORE])
        failpoints = Failpoints()
        self.assertEqual([failpoints.side("p-#", 1) for _ in range(5)], [BEFORE, None, AFTER, BEFORE, None])


class ApiServer(http.server.BaseHTTPRequestHandler):
    """Echoes requests; a watch gets two events."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in (b"one\n", b"two\n", b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(f"{self.headers['Authorization']} {body.decode()}")
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST

    def log_message(self, *_: object) -> None:
        """Requests are not logged."""


class ProxyTest(unittest.TestCase):
    def setUp(self) -> None:
        self.asked: list[str] = []
        handler = type("ApiServer", (ApiServer,), {"asked": self.asked})
        api_server = Server(("127.0.0.1", 0), handler)
        threading.Thread(target=api_server.serve_forever, args=(0.01,), daemon=True).start()
        self.lives: list[int] = []
        self.way = Way(lambda: http.client.HTTPConnection(*api_server.server_address), lambda: self.lives.append(0))
        self.proxy = serve(self.way, ("127.0.0.1", 0), Handler)
        self.clients: list[http.client.HTTPConnection] = []
        for server in (api_server, self.proxy):
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)

    def client(self) -> http.client.HTTPConnection:
        client = http.client.HTTPConnection(*self.proxy.server_address, timeout=10)
        self.addCleanup(client.close)
        return client

    def seen(self, least: int) -> list[Exchange]:
        """Waits, because an exchange is recorded shortly after the client got its answer."""
        deadline = time.monotonic() + 10
        while len(self.way.seen) < least and time.monotonic() < deadline:
            time.sleep(0.01)
        return sorted(self.way.seen, key=lambda each: each.time)

    def ask(self, client: http.client.HTTPConnection, method: str, target: str, body: bytes | None = None) -> object:
        """The answer; "reset" if there is none."""
        try:
            client.request(method, target, body, {"Authorization": "Bearer t"})
            response = client.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            client.close()
            return "reset"

    def test_passes_everything_on(self) -> None:
        client = self.client()
        self.assertEqual(self.ask(client, "POST", PODS, POD), (201, POD))
        self.assertEqual(self.ask(client, "GET", f"{PODS}?watch=1"), (200, b"one\ntwo\n"))
        self.assertEqual(self.asked, [f"Bearer t {POD.decode()}", f"{PODS}?watch=1"])

    def test_kills_before_and_after_a_write(self) -> None:
        self.way.mood = Mood(kills=2)
        other = self.client()
        self.assertEqual(self.ask(other, "GET", PODS)[0], 200)
        self.assertEqual(self.ask(self.client(), "POST", SERVICES, POD), "reset")
        self.assertEqual((len(self.lives), len(self.asked)), (1, 1), "it was not passed on")
        self.assertEqual(self.ask(other, "GET", PODS), "reset", "its process is dead")
        self.assertEqual(self.ask(self.client(), "POST", SERVICES, POD), "reset")
        self.assertEqual((len(self.lives), len(self.asked)), (2, 2), "it was passed on")
        self.assertEqual(self.ask(self.client(), "POST", SERVICES, POD), (201, POD))
        posts = [each.outcome for each in self.seen(5) if each.method == "POST"]
        self.assertEqual(posts, [BEFORE, AFTER, "201"])

    def test_cuts_off(self) -> None:
        self.way.mood = Mood(reset_share=1.0)
        self.assertEqual([self.ask(self.client(), "POST", PODS, POD) for _ in range(20)].count("reset") > 5, True)
        self.assertEqual(self.ask(self.client(), "GET", f"{PODS}?watch=1"), "reset")

    def test_refuses_all_but_the_lease(self) -> None:
        self.way.mood = Mood(refuse_share=1.0)
        client = self.client()
        self.assertEqual(self.ask(client, "POST", PODS, POD)[0], 429)
        self.assertEqual(self.ask(client, "PUT", LEASE, b"{}")[0], 201)


class PodTest(unittest.TestCase):
    def test_the_operator_is_started_again_next_to_the_proxy(self) -> None:
        operator = {
            "name": "operator", "image": "there/operator:1", "args": ["--log-level=info"], "env": [],
            "livenessProbe": {}, "readinessProbe": {}, "securityContext": {"readOnlyRootFilesystem": True},
        }  # fmt: skip
        template = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"serviceAccountName": "pliant", "containers": [operator]},
        }
        pod = behind_proxy.pod({"spec": {"template": template}}, "there/python:1", ["--lease-seconds=4"])
        again, proxy = pod["spec"]["containers"]
        self.assertEqual((again["args"], proxy["image"]), (["--log-level=info", "--lease-seconds=4"], "there/python:1"))
        self.assertNotIn("livenessProbe", again)
        self.assertIn("livenessProbe", operator)
        self.assertTrue(pod["spec"]["shareProcessNamespace"])
        self.assertEqual(pod["spec"]["serviceAccountName"], "pliant")


def exchange(method: str, path: str, outcome: str = "200", time: float = 0.0) -> Exchange:
    return Exchange(time, method, path, outcome)


class SeenTest(unittest.TestCase):
    def test_kinds_of_writes_that_were_spared_are_reported(self) -> None:
        needed = [
            exchange("POST", PODS, BEFORE), exchange("PATCH", f"{PODS}/one-0", AFTER),
            exchange("POST", "/api/v1/namespaces/demo/secrets", BEFORE),
            exchange("POST", SERVICES, AFTER), exchange("PATCH", f"{JOB}/status", BEFORE),
            exchange("POST", "/apis/networking.k8s.io/v1/namespaces/demo/networkpolicies", BEFORE),
            exchange("DELETE", f"{PODS}/one-coordinator-1", AFTER),
        ]  # fmt: skip
        self.assertEqual(deadly_writes.spared(needed), [])
        survived = [*needed[1:], exchange("POST", PODS, "201")]
        self.assertEqual(deadly_writes.spared(survived), ["never at POST pods"])
        self.assertIn(["PATCH elastictrainingjobs/status", "1", "0"], deadly_writes.table(needed))

    def test_the_last_write_takes_the_coordinator_away(self) -> None:
        learner = builders.learner(0, phase="Succeeded")
        coordinator = dataclasses.replace(learner, name="deadly-coordinator-1", role="coordinator")
        job = builders.job("deadly", phase="Succeeded")
        for pods, gone in (((learner, coordinator), False), ((learner,), True)):
            with self.subTest(gone=gone):
                world = builders.world(0.0, builders.Training(job, pods, None))
                self.assertEqual(deadly_writes.without_coordinator(world), gone)
        self.assertFalse(deadly_writes.without_coordinator(builders.world(0.0)))

    def test_the_busiest_second(self) -> None:
        seen = [exchange("GET", PODS, time=time) for time in (0.0, 0.9, 1.1, 1.2, 1.8, 5.0)]
        self.assertEqual(behind_proxy.busiest_second(seen), 4)
        self.assertEqual(behind_proxy.busiest_second([]), 0)

    def test_many_writes_are_a_storm(self) -> None:
        calm = [exchange("PATCH", f"{JOB}/status", "429", time=float(second)) for second in range(20)]
        storm = [exchange("PATCH", f"{JOB}/status", "429", time=second / 100) for second in range(100)]
        for seen, storms in ((calm, 0), (storm, 2)):
            with self.subTest(storms=storms):
                answer = bad_connection.Answer("late", 1.0, 1, seen)
                self.assertEqual(len(answer.storms()), storms)
        self.assertEqual(bad_connection.Answer("late", 1.0, 3, calm).row()[-2:], ["20", "20"])
