"""Commands that run in a pod of their own: logs --kept and whatif. The pod is restricted, and it is always deleted."""

import json
import os
import signal
import stat
import time
import unittest

from kubectl_pliant import kept_output, what_if
from kubectl_pliant.errors import CommandError
from kubectl_pliant.kept_output import KeptFile
from kubectl_pliant.short_pod import PodWish, manifest
from play import ProgramTest

JOB_UID = "00000001-1111-4222-8333-444455556666"
_POD = "00000000-aaaa-4bbb-8ccc-000000000000"


class FramesTest(unittest.TestCase):
    """What the shell in the pod prints, which anybody may have written."""

    files = (KeptFile(f"digits-00000-3-{_POD}.log", _POD, 3), KeptFile("a.log", "", -1))

    def test_no_content_passes_for_another_file(self) -> None:
        content = b"1 a.log\n5 a.log\nlast"
        name = self.files[0].name.encode()
        answer = b"%d %s\n%s2 a.log\nx\n0 a.log\n" % (len(content), name, content)
        want = ["learner-3: 1 a.log", "learner-3: 5 a.log", "learner-3: last", "a.log: x"]
        self.assertEqual(kept_output.lines_of(answer, self.files, None), want)
        self.assertEqual(kept_output.lines_of(answer, self.files, 1), [want[2], want[3]])

    def test_a_malformed_answer_is_refused(self) -> None:
        for answer in (b"x", b"5 a.log\nab", b"1 b.log\nx", b"-1 a.log\n", b"1\n", b"999999999999999 a.log\n", b"\n"):
            with self.subTest(answer=answer), self.assertRaises(CommandError):
                kept_output.lines_of(answer, self.files, None)

    def test_files_of_learners(self) -> None:
        listing = f"digits-00000-3-{_POD}.log\ndigits-00000-12-{_POD}.log.1\n../x.log\n-rf\n\x1b.log\nx-{_POD}.log\n"
        found = [(each.prefix, each.pod_uid) for each in kept_output.files_in(listing.encode())]
        self.assertEqual(found, [("learner-3", _POD), ("learner-12", _POD), (f"x-{_POD}.log", _POD)])
        many = "".join(f"a-{number}-{_POD}.log\n" for number in range(999))
        self.assertEqual(len(kept_output.files_in(many.encode())), 256)


class WishTest(unittest.TestCase):
    def job(self, **spec: object) -> dict:
        volume = {"persistentVolumeClaim": {"claimName": "training"}}
        template = {"spec": {"containers": [{"name": "learner", "image": "learner:1"}], **spec}}
        return {
            "metadata": {"name": "a", "uid": JOB_UID},
            "spec": {"checkpoint": {"volume": volume}, "template": template},
        }

    def test_it_runs_as_the_learners_do_but_not_as_root(self) -> None:
        for security, user, groups in (
            ({}, 65532, ()), ({"runAsUser": 1000, "fsGroup": 2000}, 1000, (2000,)), ({"runAsUser": 0}, 65532, ()),
            ({"runAsUser": "root", "fsGroup": -1}, 65532, ()),
        ):  # fmt: skip
            with self.subTest(security=security):
                wish = kept_output.wish_of(self.job(securityContext=security), None)
                self.assertEqual((wish.user, wish.groups), (user, groups))

    def test_the_volume_has_known_fields_only_and_is_read_only(self) -> None:
        for volume, want in (
            (
                {"persistentVolumeClaim": {"claimName": "c", "x": 1}},
                {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
            ),
            ({"nfs": {"server": "s", "path": "/p"}}, {"nfs": {"server": "s", "path": "/p", "readOnly": True}}),
            ({"hostPath": {"path": "/p", "type": "Socket"}}, {"hostPath": {"path": "/p", "type": "Directory"}}),
        ):
            job = self.job()
            job["spec"]["checkpoint"]["volume"] = volume
            self.assertEqual(kept_output.wish_of(job, None).volumes, ({"name": "checkpoints", **want},))
        for volume in ({}, None, 5, {"secret": {"secretName": "s"}}, {"nfs": {"server": "s"}}):
            job["spec"]["checkpoint"]["volume"] = volume
            with self.subTest(volume=volume), self.assertRaises(CommandError):
                kept_output.wish_of(job, None)

    def test_a_pod_without_an_image(self) -> None:
        self.assertEqual(kept_output.wish_of(self.job(containers=[]), "x:1").image, "x:1")
        for job in (self.job(containers=[]), self.job(containers=[{"name": "learner", "image": 5}])):
            with self.assertRaises(CommandError):
                kept_output.wish_of(job, None)
        for pod in (None, {"spec": {"containers": [{"name": "operator"}]}}):
            with self.assertRaises(CommandError):
                what_if.wish_of(pod)

    def test_the_pod_is_restricted_and_has_no_token(self) -> None:
        pod = manifest(PodWish("test", "x:1", "1Gi", user=5), "pliant-test-0")
        spec = pod["spec"]
        assert isinstance(spec, dict)
        (container,) = spec["containers"]
        self.assertIs(spec["automountServiceAccountToken"], False)
        self.assertEqual(spec["securityContext"]["runAsNonRoot"], True)
        self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertEqual(container["securityContext"]["capabilities"], {"drop": ["ALL"]})
        self.assertIs(container["securityContext"]["allowPrivilegeEscalation"], False)
        self.assertIs(container["securityContext"]["readOnlyRootFilesystem"], True)
        self.assertGreater(spec["activeDeadlineSeconds"], 0)


class PodTest(ProgramTest):
    def created(self) -> dict:
        made = self.cluster.read("created.json")
        assert isinstance(made, dict)
        return made

    def assert_deleted(self) -> None:
        name = self.created()["metadata"]["name"]
        pods = self.cluster.read("pods.json")
        assert isinstance(pods, dict)
        self.assertNotIn(name, [each["metadata"]["name"] for each in pods["items"]])


class KeptOutputTest(PodTest):
    def setUp(self) -> None:
        super().setUp()
        self.logs = self.cluster.folder / "checkpoints" / JOB_UID / "logs"
        self.logs.mkdir(parents=True)

    def keep(self, number: int, text: str, suffix: str = "", age: int = 0) -> None:
        file = self.logs / f"digits-00000-{number}-{number:08x}-aaaa-4bbb-8ccc-000000000000.log{suffix}"
        file.write_text(text)
        os.utime(file, (1e9 - age, 1e9 - age))

    def test_learners_that_ended_oldest_first(self) -> None:
        self.keep(0, "later\n", age=5)
        self.keep(0, "earlier\n", ".1", age=9)
        self.keep(1, "first\x1b[2J\n", age=20)
        self.keep(2, "it still runs\n")  # as a pod that exists
        (self.logs / "secret.log").symlink_to("/etc/passwd")
        (self.logs / f"link-7-{_POD}.log").symlink_to("/etc/passwd")
        os.mkfifo(self.logs / f"pipe-8-{_POD}.log")
        ended = self.run_it("logs digits --kept")
        self.assertEqual((ended.code, ended.stderr), (0, ""))
        self.assertEqual(
            ended.stdout.splitlines(), ["learner-1: first\\x1b[2J", "learner-0: earlier", "learner-0: later"]
        )
        self.assert_deleted()
        pod = self.created()
        self.assertEqual(pod["spec"]["containers"][0]["image"], "registry.example/pliant/learner:0.1.0")
        self.assertEqual(
            pod["spec"]["containers"][0]["volumeMounts"],
            [{"name": "checkpoints", "mountPath": "/checkpoints", "readOnly": True}],
        )
        self.assertNotIn("ownerReferences", pod["metadata"])

    def test_one_learner_and_its_last_lines(self) -> None:
        self.keep(0, "a\nb\nc\n")
        self.keep(1, "d\n")
        ended = self.run_it("logs digits --kept --learner 0 --tail 2")
        self.assertEqual(ended.stdout, "learner-0: b\nlearner-0: c\n")

    def test_nothing_is_kept(self) -> None:
        self.logs.rmdir()
        ended = self.run_it("logs digits --kept")
        said = "no output of ended learners of digits is kept on its checkpoint volume\n"
        self.assertEqual((ended.code, ended.stdout, ended.stderr), (0, "", said))
        self.assert_deleted()

    def test_a_pod_that_ends_at_once(self) -> None:
        waiting = {"state": {"terminated": {"reason": "StartError", "message": 'exec: "sleep": not found'}}}
        self.cluster.write("status.json", {"phase": "Failed", "containerStatuses": [waiting]})
        ended = self.run_it("logs digits --kept")
        self.assertEqual(ended.code, 1)
        self.assertRegex(
            ended.stderr,
            r'\Aerror: the pod pliant-kept-output-\w+ has ended at once: StartError: exec: "sleep": not found\n',
        )
        self.assert_deleted()

    def test_one_may_not_create_pods(self) -> None:
        said = 'Error from server (Forbidden): pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "team-a"'
        refused = {"stderr": said, "code": 1}
        also = {"stderr": said.replace("create", "delete"), "code": 1}
        self.cluster.write("faults.json", [{"match": "create", **refused}, {"match": "delete", **also}])
        self.assert_fails(
            "logs digits --kept", 1,
            "forbidden: you may not create pods in namespace team-a; ask an administrator for a role with this verb",
        )  # fmt: skip

    def test_ctrl_c_deletes_the_pod(self) -> None:
        self.cluster.write("status.json", {"phase": "Pending"})
        process = self.cluster.start(["logs", "digits", "--kept"])
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 20
        while not (self.cluster.folder / "created.json").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.communicate(timeout=20), ("", ""))
        self.assertEqual(process.returncode, 130)
        self.assert_deleted()


class WhatIfTest(PodTest):
    def setUp(self) -> None:
        super().setUp()
        pages = {"/debug/snapshot": [200, json.dumps({"version": 1, "text": "x" * 300000})]}
        self.cluster.write("http-6060.json", pages)
        (self.cluster.folder / "bin").mkdir()

    def simulate(self, script: str) -> None:
        program = self.cluster.folder / "bin" / "pliant-simulate"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def test_the_snapshot_reaches_the_simulator(self) -> None:
        self.simulate('echo "$@"; wc -c; printf "\\033[2J\\n"')
        ended = self.run_it("whatif --set queue.research.weight=300 --set nodes+=2x8 --forward")
        arguments = "--snapshot=- --set=queue.research.weight=300 --set=nodes+=2x8 --forward"
        bytes_of_snapshot = len(json.dumps({"version": 1, "text": "x" * 300000}))
        self.assertEqual((ended.code, ended.stderr), (0, ""))
        self.assertEqual(ended.stdout.split("\n"), [arguments, str(bytes_of_snapshot), "\\x1b[2J", ""])
        self.assert_deleted()
        self.assertEqual(self.created()["spec"]["containers"][0]["image"], "registry.example/pliant/operator:0.1.0")
        self.assertIn("--namespace=pliant-system", next(call for call in self.cluster.calls() if "create" in call))

    def test_a_change_that_is_none(self) -> None:
        self.simulate('echo "--set: queue.researchweight=3: there is no field researchweight" >&2; exit 2')
        self.assert_fails(
            "whatif --set queue.researchweight=3", 2,
            "--set: queue.researchweight=3: there is no field researchweight",
        )  # fmt: skip
        self.assert_deleted()


if __name__ == "__main__":
    unittest.main()
