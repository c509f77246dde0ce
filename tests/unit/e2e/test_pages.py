import unittest

from story import pages

_PAGE = """\
```sh
kubectl apply -f a.yaml
kubectl wait etj/a --for=condition=Complete
```
```sh not-run
rm -rf /
```
```sh run-by=tests/e2e/story/pages.py
kubectl delete -k a
echo b
```
```sh run-by=tests/scenario/test_alone.py
pliant-learner
```
```yaml
kind: ElasticTrainingJob
image: REGISTRY/pliant/learner:0.1.0
```
```yaml
image: a part
```
"""


class PagesTest(unittest.TestCase):
    def test_marked_and_unmarked_fences_run_in_their_order(self) -> None:
        found = [each.text.splitlines()[0] for each in pages.scripts("a.md", _PAGE)]
        self.assertEqual(found, ["kubectl apply -f a.yaml", "kubectl delete -k a"])
        (marked,) = pages.scripts("a.md", _PAGE, unmarked=False)
        self.assertEqual(marked.text, "kubectl delete -k a\necho b\n")

    def test_yaml_that_commands_name_is_a_file(self) -> None:
        text = pages.with_image(_PAGE, "localhost/pliant/learner:dev-1")
        self.assertEqual(
            list(pages.files(text)),
            [("job.yaml", "kind: ElasticTrainingJob\nimage: REGISTRY/pliant/learner:dev-1\n")],
        )
        self.assertEqual(pages.with_image("REGISTRY=registry.example.com/ml", "a/b/pliant/learner:1"), "REGISTRY=a/b")

    def test_a_watch_is_ended(self) -> None:
        for line, want in (
            ("kubectl get etj -w", "timeout 5 kubectl get etj -w || [ $? = 124 ]"),
            ("kubectl get etj a -o wide -w     # size", "timeout 5 kubectl get etj a -o wide -w || [ $? = 124 ]"),
            ("kubectl get -w etj", "timeout 5 kubectl get -w etj || [ $? = 124 ]"),
            ("kubectl get etj -o wide", "kubectl get etj -o wide"),
        ):
            with self.subTest(line=line):
                self.assertEqual(pages.bounded(line), want)

    def test_variables_are_lines_of_their_own(self) -> None:
        text = "export A=b\nuid=$(kubectl get etj x)  # its uid\nA=1 run this\necho c=d\n"
        self.assertEqual(pages.variables(text), {"A": "export A=b\n", "uid": "uid=$(kubectl get etj x)\n"})

    def test_the_pages_have_files_and_commands(self) -> None:
        texts = [(pages.REPO / page).read_text() for page in pages.TASKS]
        names = sorted(name for text in texts for name, _ in pages.files(text))
        self.assertEqual(names, ["claim.yaml", "job.yaml", "replay.yaml", "results.yaml"])
        commands = "".join(each.text for text in texts for each in pages.scripts("a.md", text))
        for name in names:
            self.assertIn(name, commands)
        self.assertEqual(len(pages.scripts("a.md", (pages.REPO / pages.QUICK_START).read_text())), 4)


if __name__ == "__main__":
    unittest.main()
