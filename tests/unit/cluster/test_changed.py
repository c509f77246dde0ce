"""Which tests a change selects; and that the selection covers every file of the repository."""

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from pliantdev import changed, changes, cmake_reply, file_map, selection, source_tree
from pliantdev.code_graph import Graph, Target, Test, includes_of
from pliantdev.errors import DevError
from pliantdev.file_map import ALERTS, CHART, CUDA, E2E, FORMAT, IN_IMAGES, KERAS, KILLS, TYPES
from pliantdev.selection import Reach, select
from pliantdev.settings import REPO


def library(name: str, folder: str, sources: str, *needs: str) -> Target:
    return Target(
        name, folder, frozenset(f"{folder}/{each}" for each in sources.split()), frozenset(needs)
    )


def name_of(name: str, *needs: str) -> Target:
    return Target(name, "", needs=frozenset(needs), compiled=False)


# A small repository in the shape of ours.
GRAPH = Graph(
    targets={
        each.name: each
        for each in (
            library("pliant_base", "base", "log.cc"),
            library("pliant_kube", "operator/kube", "client.cc", "pliant_base"),
            library("pliant-operator", "operator", "main.cc", "pliant_kube"),
            library("operator_bench", "tests/bench", "operator_bench.cc", "pliant_kube"),
            library("pliant_runtime", "trainer/runtime", "loop.cc", "pliant_base"),
            library("pliant", "trainer/runtime", "none.cc", "pliant_runtime"),
            library("toy-learner", "tests/scenario", "toy_learner.cc", "pliant_runtime"),
            library("base_test", "tests/unit/base", "log_test.cc", "pliant_base"),
            library("kube_test", "tests/unit/kube", "client_test.cc", "pliant_kube"),
            library("runtime_test", "tests/unit/runtime", "loop_test.cc", "pliant_runtime"),
            library("frames_fuzz", "tests/fuzz", "frames_fuzz.cc", "pliant_runtime"),
            library(
                "operator_test", "tests/integration", "it.cc", "pliant_kube", "pliant-operator"
            ),
            name_of("unit_tests", "base_test", "kube_test", "runtime_test"),
            name_of("scenario_tests", "toy-learner"),
            name_of("python_tests", "pliant"),
        )
    },
    tests={
        each.name: each
        for each in (
            Test("base_test", "unit", "tests/unit/base", "base_test"),
            Test("kube_test", "unit", "tests/unit/kube", "kube_test"),
            Test("runtime_test", "unit", "tests/unit/runtime", "runtime_test"),
            Test("dev_parts_test", "unit", "tests/unit/cluster"),
            Test("frames_fuzz", "fuzz", "tests/fuzz", "frames_fuzz"),
            Test("operator_test", "integration", "tests/integration", "operator_test"),
            Test("operator_quiet_test", "integration", "tests/integration", "operator_test", True),
            Test("scenario_resize_test", "scenario", "tests/scenario"),
            Test("python_attach_test", "python", "tests/python"),
            Test("python_wheel_test", "python", "tests/python", long=True),
        )
    },
    includes={
        "base/log.cc": frozenset({"base/log.h"}),
        "operator/kube/client.h": frozenset({"base/log.h"}),
        "operator/kube/client.cc": frozenset({"operator/kube/client.h"}),
        "tests/unit/kube/client_test.cc": frozenset({"operator/kube/client.h"}),
        "trainer/runtime/loop.cc": frozenset({"trainer/runtime/loop.h"}),
    },
)
ALL_SHORT = {name for name, test in GRAPH.tests.items() if not test.long}
OF_OPERATOR = {"kube_test", "operator_test"}
OF_RUNTIME = {"runtime_test", "frames_fuzz", "scenario_resize_test", "python_attach_test"}


class SelectTest(unittest.TestCase):
    def test_cpp_reaches_what_is_compiled_from_it_and_all_that_link_that(self) -> None:
        compiled = ALL_SHORT - {"dev_parts_test"}
        for file, tests, parts in (
            ("tests/unit/kube/client_test.cc", {"kube_test"}, {FORMAT}),
            ("operator/main.cc", {"operator_test"}, {FORMAT}),
            ("operator/kube/client.h", OF_OPERATOR, {FORMAT}),
            ("trainer/runtime/loop.h", OF_RUNTIME, {FORMAT, KERAS[0]}),
            ("base/log.h", compiled, {FORMAT, KERAS[0]}),
            ("base/log.cc", compiled, {FORMAT, KERAS[0]}),
            ("tests/scenario/toy_learner.cc", {"scenario_resize_test"}, {FORMAT}),
            ("tests/bench/operator_bench.cc", set(), {FORMAT}),
            ("trainer/cuda/kernels.cu", {"kernels_sass_test"}, {FORMAT, CUDA}),
        ):
            with self.subTest(file):
                reach = select([file], GRAPH).by_file[file]
                self.assertEqual(reach.tests, tests)
                self.assertEqual(reach.parts, parts)

    def test_a_program_that_no_test_runs_is_compiled(self) -> None:
        reach = select(["tests/bench/operator_bench.cc"], GRAPH).whole
        self.assertEqual(changed.to_compile(reach, GRAPH), ["operator_bench"])

    def test_scripts_need_the_programs_of_their_set(self) -> None:
        reach = select(["tests/scenario/test_resize.py"], GRAPH).whole
        self.assertEqual(changed.to_compile(reach, GRAPH), ["toy-learner"])

    def test_a_file_that_cmake_does_not_know_counts_for_its_folder(self) -> None:
        for file, tests in (
            ("operator/kube/gone.cc", OF_OPERATOR),
            ("tests/unit/kube/new_test.cc", {"kube_test"}),
            ("tests/unit/kube/deep/new_test.cc", {"kube_test"}),
            ("operator/kube/CMakeLists.txt", OF_OPERATOR),
            ("operator/CMakeLists.txt", OF_OPERATOR),
            ("tests/scenario/CMakeLists.txt", {"scenario_resize_test"}),
            ("tests/unit/cluster/CMakeLists.txt", {"dev_parts_test"}),
            ("trainer/binding/pliant.map", OF_RUNTIME),
        ):
            with self.subTest(file):
                self.assertEqual(select([file], GRAPH).by_file[file].tests, tests)

    def test_the_other_files_have_readers_in_a_table(self) -> None:
        scripts = {"python_attach_test"}
        for file, tests, parts in (
            ("README.md", set(), set()),
            ("docs/python-api.md", {"python_state_test"}, set()),
            ("docs/install.md", set(), {CHART}),
            ("helm/pliant/values.yaml", set(), {CHART}),
            ("helm/pliant/files/alerts.yaml", {"e2e_parts_test"}, {CHART, ALERTS}),
            ("tests/scenario/test_resize.py", {"scenario_resize_test"}, set()),
            ("tests/python/test_loop.py", {"python_loop_test"}, set()),
            ("tests/python/test_keras.py", set(), {*KERAS}),
            ("trainer/python/pliant/_loop.py", scripts, {*IN_IMAGES, TYPES}),
            ("trainer/python/pliant/_keras/with_jax.py", set(), {"Keras over jax", TYPES}),
            ("trainer/python/build_backend/pliant_wheel.py", {"python_wheel_test"}, set()),
            ("tests/e2e/story/ranks.py", {"e2e_parts_test"}, {E2E}),
            ("tests/e2e/story/chart.py", {"e2e_parts_test"}, set()),
            ("tests/cluster/pliantdev/node.py", {"dev_parts_test", "pliantdev_test"}, {E2E}),
            ("tests/cluster/crash_test.py", set(), {KILLS}),
            ("tests/cluster/kubernetes/go.mod", {"operator_test"}, {CHART, E2E}),
        ):
            with self.subTest(file):
                reach = select([file], GRAPH).by_file[file]
                self.assertEqual(reach.tests, tests)
                self.assertEqual(reach.parts, parts)

    def test_files_of_the_build_reach_everything_built(self) -> None:
        for file in ("CMakeLists.txt", "cmake/PliantTest.cmake", "CMakePresets.json"):
            with self.subTest(file):
                reach = select([file], GRAPH).by_file[file]
                self.assertEqual(reach.tests, ALL_SHORT)
                self.assertEqual(reach.parts, {*IN_IMAGES, CUDA})

    def test_an_unknown_file_selects_everything(self) -> None:
        for file in ("new/thing.xyz", "tests/unit/new.sh", "LICENSE.rtf"):
            with self.subTest(file):
                selected = select([file], GRAPH)
                self.assertEqual(selected.unknown, {file})
                self.assertEqual(selected.by_file[file].tests, ALL_SHORT)
                self.assertEqual(selected.by_file[file].parts, {*file_map.PARTS})

    def test_tests_that_read_any_file_always_run(self) -> None:
        always = Reach(frozenset({"documents_test", "dev_parts_test"}))
        self.assertEqual(select([".clang-tidy"], GRAPH).whole, always)
        self.assertEqual(select([], GRAPH).whole, Reach())

    def test_several_files_add_up(self) -> None:
        whole = select(["operator/main.cc", "helm/pliant/values.yaml"], GRAPH).whole
        self.assertEqual(whole.tests, {"operator_test", "documents_test", "dev_parts_test"})
        self.assertEqual(whole.parts, {FORMAT, CHART})

    def test_sanitizers_run_what_they_can_tell_of(self) -> None:
        whole = select(["base/log.h"], GRAPH).whole
        left = selection.sanitized(whole, ("unit", "fuzz"), GRAPH)
        of_both = {"base_test", "kube_test", "runtime_test", "dev_parts_test", "frames_fuzz"}
        self.assertEqual(left.tests, of_both)
        self.assertEqual(left.parts, frozenset())


class ExplainTest(unittest.TestCase):
    def test_says_of_each_file_what_it_selects(self) -> None:
        selected = select(["operator/main.cc", "README.md", "docs/faults.md", "odd"], GRAPH)
        self.assertEqual(
            selection.explain(selected, GRAPH, width=60),
            [
                "README.md",
                "docs/faults.md",
                "  → nothing",
                "odd (unknown)",
                "  → format, types, chart, alerts and dashboard, Keras over",
                "    tensorflow, Keras over torch, Keras over jax, Hugging",
                "    Face, Trainers of Hugging Face, Lightning and trackers,",
                "    GPU pack, e2e, the kills of ./dev up, all of unit (4),",
                "    frames_fuzz, operator_test, python_attach_test,",
                "    scenario_resize_test",
                "operator/main.cc",
                "  → format, operator_test",
                "all changes",
                "  → dev_parts_test, documents_test",
            ],
        )


class MomentsTest(unittest.TestCase):
    def test_a_selection_is_a_run_of_moments_with_what_they_need(self) -> None:
        for files, names in (
            (["tests/e2e/demo.py"], ["tests"]),
            (["operator/main.cc"], ["format", "compile", "tests", "integration tests"]),
            (["tests/e2e/story/ranks.py"], ["tests", "cluster and images", "e2e"]),
            (["tests/cluster/crash_test.py"], ["tests", "the kills of ./dev up"]),
            (["tests/python/test_keras.py"], ["tests", *KERAS]),
        ):
            with self.subTest(files=files):
                graph = Graph(
                    GRAPH.targets,
                    {
                        **GRAPH.tests,
                        "documents_test": Test("documents_test", "unit", "tests/unit/docs"),
                    },
                    GRAPH.includes,
                )
                reach = select(files, graph).whole
                moments = changed.of_reach(reach, graph, changed.Choices())
                self.assertEqual([each.name for each in moments], names)

    def test_without_the_cluster_nothing_starts_it(self) -> None:
        whole = select(["new/thing.xyz"], GRAPH).whole
        left = selection.without_cluster(whole)
        self.assertEqual(left.parts, {*file_map.PARTS} - {E2E, KILLS})
        names = [each.name for each in changed.of_reach(left, GRAPH, changed.Choices())]
        self.assertEqual({"cluster and images", "e2e", KILLS} & {*names}, set())

    def test_every_part_of_the_table_is_a_moment(self) -> None:
        moments = changed.of_reach(Reach(parts=frozenset(file_map.PARTS)), GRAPH, changed.Choices())
        self.assertLessEqual({*file_map.PARTS}, {each.name for each in moments})


def repository() -> list[str]:
    """All tracked files or, without git, all files in the folder."""
    tracked = source_tree.git("ls-files", "-z")
    return [name for name in tracked.split("\0") if name] if tracked else source_tree.files()


class FileMapTest(unittest.TestCase):
    def test_every_file_of_the_repository_is_known(self) -> None:
        files = repository()
        self.assertGreater(len(files), 1000)
        unknown = [file for file in files if file_map.readers(file) is None]
        self.assertEqual(unknown, [], "tests/cluster/pliantdev/file_map.py has no row for them")

    def test_every_row_is_the_first_for_some_file(self) -> None:
        """An unused pattern would be dead, or mistyped."""
        met = {file_map.pattern_of(file) for file in repository()}
        dead = [pattern for pattern in file_map.patterns() if pattern not in met]
        self.assertEqual(dead, [])

    def test_every_reader_exists(self) -> None:
        lists = "".join(path.read_text() for path in REPO.rglob("CMakeLists.txt"))
        tests = {*re.findall(r"(?:pliant_test\(|pliant_fuzz_test\(|add_test\(NAME )(\w+)", lists)}
        for set_name, folder in (("scenario", "scenario"), ("python", "python")):
            scripts = (REPO / "tests" / folder).glob("test_*.py")
            tests |= {f"{set_name}_{path.stem.removeprefix('test_')}_test" for path in scripts}
        words = {file_map.EVERYTHING, file_map.ALL_TESTS, file_map.FROM_IT, file_map.OF_ITS_FOLDER}
        of_sets = {f"{word}{name}" for word in (file_map.SET, file_map.SCRIPTS)
                   for name in ("integration", "python", "scenario")}  # fmt: skip
        known = tests | words | of_sets | {*file_map.PARTS}
        for file in repository():
            self.assertLessEqual({*(file_map.readers(file) or ())}, known, file)


class IncludesTest(unittest.TestCase):
    def test_are_those_of_the_project(self) -> None:
        text = '#include <vector>\n#include "base/log.h"\n  #  include "a/b.h"\n// #include "c.h"\n'
        self.assertEqual(includes_of(text), {"base/log.h", "a/b.h"})


class CMakeReplyTest(unittest.TestCase):
    """Replies of CMake 3.31, shortened."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.build = Path(scratch.name)

    def write(self, name: str, value: object) -> None:
        file = self.build / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))

    def test_is_read(self) -> None:
        replies = ".cmake/api/v1/reply"
        self.write(f"{replies}/index-1.json", {"reply": {"codemodel-v2": {"jsonFile": "old.json"}}})
        self.write(f"{replies}/index-2.json", {"reply": {"codemodel-v2": {"jsonFile": "m.json"}}})
        self.write(
            f"{replies}/m.json",
            {
                "paths": {"build": "/src/build/release", "source": "/src"},
                "configurations": [
                    {"targets": [{"jsonFile": f"{n}.json"} for n in ("lib", "test", "all")]}
                ],
            },
        )
        self.write(f"{replies}/lib.json", {
            "name": "base", "id": "base::@1", "type": "STATIC_LIBRARY", "paths": {"source": "base"},
            "sources": [{"path": "base/log.cc"}], "artifacts": [{"path": "base/libbase.a"}],
        })  # fmt: skip
        self.write(f"{replies}/test.json", {
            "name": "base_test", "id": "base_test::@2", "type": "EXECUTABLE",
            "paths": {"source": "tests/unit"}, "sources": [{"path": "tests/unit/log_test.cc"}],
            "artifacts": [{"path": "bin/base_test"}], "dependencies": [{"id": "base::@1"}],
        })  # fmt: skip
        self.write(f"{replies}/all.json", {
            "name": "unit_tests", "id": "unit_tests::@3", "type": "UTILITY", "paths": {"source": "."},
            "dependencies": [{"id": "base_test::@2"}],
        })  # fmt: skip
        self.write("CTestTestfile.cmake", 'subdirs("tests/unit")\n')
        self.write("tests/unit/CTestTestfile.cmake", """\
add_test([=[base_test]=] "/src/build/release/bin/base_test")
set_tests_properties([=[base_test]=] PROPERTIES  LABELS "unit" TIMEOUT "400" _BACKTRACE_TRIPLES "/src/x;1;y;")
add_test([=[wheel_test]=] "/usr/bin/python3" "-B" "/src/tests/wheel.py")
set_tests_properties([=[wheel_test]=] PROPERTIES  ENVIRONMENT "A=b" LABELS "python;long" TIMEOUT "9")
""")  # fmt: skip
        graph = cmake_reply.read(self.build, self.build)
        self.assertEqual(
            graph.targets,
            {
                "base": library("base", "base", "log.cc"),
                "base_test": library("base_test", "tests/unit", "log_test.cc", "base"),
                "unit_tests": name_of("unit_tests", "base_test"),
            },
        )
        self.assertEqual(
            graph.tests,
            {
                "base_test": Test("base_test", "unit", "tests/unit", "base_test"),
                "wheel_test": Test("wheel_test", "python", "tests/unit", None, True),
            },
        )

    def test_without_an_answer_the_error_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(DevError, "remedy: remove"):
            cmake_reply.read(self.build, self.build)


class ChangesTest(unittest.TestCase):
    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.git("init", "--quiet", "--initial-branch=trunk")
        for name in ("kept", "edited", "removed", "renamed"):
            (self.root / name).write_text(f"text of {name}\n" * 9)
        (self.root / ".gitignore").write_text("ignored\n")
        self.commit()

    def git(self, *arguments: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example")
        subprocess.run(
            ["git", "-C", self.root, *identity, *arguments], check=True, capture_output=True
        )

    def commit(self) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=m")

    def test_are_committed_or_not_and_tracked_or_not(self) -> None:
        self.git("branch", "main")
        (self.root / "edited").write_text("other")
        self.commit()
        (self.root / "removed").unlink()
        (self.root / "renamed").rename(self.root / "ümlaut name")
        (self.root / "ignored").write_text("")
        commit, words = changes.base(None, self.root)
        self.assertEqual(words, "the merge base with main")
        self.assertEqual(
            changes.files(commit, self.root), ["edited", "removed", "renamed", "ümlaut name"]
        )
        commit, words = changes.base("HEAD", self.root)
        self.assertEqual(changes.files(commit, self.root), ["removed", "renamed", "ümlaut name"])

    def test_errors_say_the_remedy(self) -> None:
        with self.assertRaisesRegex(DevError, "remedy: ./dev test changed --since COMMIT"):
            changes.base(None, self.root)
        with self.assertRaisesRegex(DevError, "--since: git knows no commit nowhere"):
            changes.base("nowhere", self.root)


if __name__ == "__main__":
    unittest.main()
