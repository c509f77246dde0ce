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
    def test_what_waits_and_what_deletes_comes_last(self) -> None:
        now, last = pages.scripts("a.md", _PAGE)
        self.assertEqual([each.text for each in now], ["kubectl apply -f a.yaml\n", "echo b\n"])
        self.assertEqual(
            [each.text for each in last], ["kubectl wait etj/a --for=condition=Complete\n", "kubectl delete -k a\n"]
        )

    def test_whole_objects_are_files_with_the_image_that_there_is(self) -> None:
        found = list(pages.files(_PAGE, "here/learner:1"))
        self.assertEqual(found, [("job.yaml", "kind: ElasticTrainingJob\nimage: here/learner:1\n")])

    def test_a_watch_is_ended(self) -> None:
        for line, want in (
            ("kubectl get etj -w", "timeout 5 kubectl get etj -w || [ $? = 124 ]"),
            ("kubectl get etj a -o wide -w     # size", "timeout 5 kubectl get etj a -o wide -w || [ $? = 124 ]"),
            ("kubectl get etj -o wide", "kubectl get etj -o wide"),
            ("kubectl get -w etj", "kubectl get -w etj"),
        ):
            with self.subTest(line=line):
                self.assertEqual(pages.bounded(line), want)

    def test_the_pages_have_commands(self) -> None:
        for page, count in ((pages.TASKS[0], 4), (pages.TASKS[1], 5), (pages.TASKS[3], 6), (pages.QUICK_START, 3)):
            now, last = pages.scripts(page, (pages.REPO / page).read_text())
            with self.subTest(page=page):
                commands = [line for script in (*now, *last) for line in script.text.splitlines()]
                self.assertGreaterEqual(len(commands), count)


if __name__ == "__main__":
    unittest.main()
