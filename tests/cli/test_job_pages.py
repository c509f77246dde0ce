"""The jobs are listed in pages, whatever the API server answers."""

import copy
import json
import unittest

from kubectl_pliant import job_pages
from kubectl_pliant.errors import CommandError
from kubectl_pliant.kubectl import Connection, Kubectl
from play import JOBS, ProgramTest


class Pages(Kubectl):
    """Answers from a list of pages, and writes down the paths."""

    def __init__(self, *pages: object) -> None:
        super().__init__(Connection(all_namespaces=True))
        self.pages = list(pages)
        self.paths: list[str] = []

    def get_raw(self, path: str, seconds: float) -> bytes:
        self.paths.append(path)
        return json.dumps(self.pages[min(len(self.paths), len(self.pages)) - 1]).encode()


def page(*names: str, token: object = None) -> object:
    return {"metadata": {"continue": token}, "items": [{"metadata": {"name": name}} for name in names]}


class PartsTest(unittest.TestCase):
    def names(self, kubectl: Pages) -> list[object]:
        return [job.name for job in job_pages.list_jobs(kubectl)]

    def test_a_token_leads_to_the_next_page(self) -> None:
        kubectl = Pages(page("a", "b", token="x/y&limit=1"), page("c", token=""))
        self.assertEqual(self.names(kubectl), ["a", "b", "c"])
        path = "/apis/pliant.dev/v1alpha1/elastictrainingjobs?limit=1000"
        self.assertEqual(kubectl.paths, [path, f"{path}&continue=x%2Fy%26limit%3D1"])

    def test_a_token_that_is_none_ends_the_list(self) -> None:
        for token in (5, ["x"], {}, None, "", "x" * 5000):
            with self.subTest(token=str(token)[:10]):
                self.assertEqual(self.names(Pages(page("a", token=token))), ["a"])

    def test_pages_without_end_are_bounded_in_time(self) -> None:
        with self.assertRaisesRegex(CommandError, "has not listed all jobs in 0.05 s: narrow them with -n"):
            job_pages.list_jobs(Pages(page(token="x")), seconds=0.05)

    def test_pages_without_end_are_bounded_in_size(self) -> None:
        before, job_pages._MAX_BYTES = job_pages._MAX_BYTES, 1 << 20
        try:
            with self.assertRaisesRegex(CommandError, "the jobs have more than 1 MiB: narrow them with -n"):
                job_pages.list_jobs(Pages(page("x" * 100_000, token="x")))
        finally:
            job_pages._MAX_BYTES = before


class ProgramsTest(ProgramTest):
    def test_pages_are_one_list(self) -> None:
        (job, *_) = self.cluster.read(f"{JOBS}.json")["items"]
        jobs = []
        for number in range(25):
            jobs.append(copy.deepcopy(job))
            jobs[-1]["metadata"]["name"] = f"job-{number:02}"
        self.cluster.write(f"{JOBS}.json", {"items": jobs})
        whole = self.run_it("list -A -o json")
        self.cluster.write("page.json", 10)
        (self.cluster.folder / "calls.jsonl").unlink()
        paged = self.run_it("list -A -o json")
        self.assertEqual(len(self.cluster.calls()), 3)
        self.assertEqual(paged, whole)
        self.assertEqual(len(json.loads(paged.stdout)["jobs"]), 25)

    def test_a_page_that_fails_is_no_shorter_list(self) -> None:
        self.cluster.write("page.json", 1)
        said = "Error from server (Expired): The provided continue parameter is too old to display a consistent list result."
        second = "--raw=/apis/pliant.dev/v1alpha1/elastictrainingjobs?limit=1000&continue=1"
        self.cluster.fault(second, code=1, stderr=said)
        self.assert_fails("list -A", 1, f"kubectl failed: {said.rstrip('.')}")

    def test_a_namespace_that_only_kubectl_knows(self) -> None:
        """In a pod there may be no kubeconfig."""
        self.cluster.fault("config", code=1, stderr="error: current-context must exist in order to minify")
        self.assertIn("digits", self.run_it("list").stdout)
        self.assertEqual(self.cluster.calls()[1][:2], ["get", f"{JOBS}.pliant.dev"])

    def test_a_namespace_that_is_no_name(self) -> None:
        self.run_it("list -n ../../secrets")
        (call,) = self.cluster.calls()
        self.assertEqual(call[:3], ["get", "--namespace=../../secrets", f"{JOBS}.pliant.dev"])


if __name__ == "__main__":
    unittest.main()
