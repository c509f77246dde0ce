"""The map from the files of the repository to their readers. For C++, CMake has it; this table is
for all other files.

The first row whose pattern matches a file counts. `*` matches any text, including slashes; {0}, {1}
in the readers stand for the matched texts. A reader is a test of ctest by its name, a part of a
run, or one of the words below. Tests that read any file are not listed: they always run. """

import re

# Names of groups of readers.
EVERYTHING = "everything"
ALL_TESTS = "all of ctest"
FROM_IT = "what is compiled from it"
OF_ITS_FOLDER = "what its folder's CMakeLists.txt defines"
SET, SCRIPTS = "the set ", "the scripts of "  # followed by the name of a set

# Parts of a run outside ctest.
FORMAT, TYPES, CHART = "format", "types", "chart"
ALERTS, CUDA = "alerts and dashboard", "GPU pack"
E2E, KILLS = "e2e", "the kills of ./dev up"
KERAS = tuple(f"Keras over {backend}" for backend in ("tensorflow", "torch", "jax"))
HUGGING_FACE = "Hugging Face"
TRAINERS, LIBRARIES = "Trainers of Hugging Face", "Lightning and trackers"
IN_IMAGES = (*KERAS, HUGGING_FACE, TRAINERS, LIBRARIES)
PARTS = (FORMAT, TYPES, CHART, ALERTS, *IN_IMAGES, CUDA, E2E, KILLS)
ON_CLUSTER = (E2E, KILLS)  # they start the local cluster; a machine can have only one

_DEV = ("pliantdev_test", "dev_parts_test")
_EXAMPLES = ("python_examples_test", "bench_parts_test", "bench_smoke_test")
_CRD = (
    "api_test",
    "crd_test",
    "kube_api_test",
    "kube_api_libcurl_test",
    "memory_api_server_test",
    "operator_test",
    "operator_libcurl_test",
    "operator_simulation_test",
    "operator_growth_test",
    "operator_story_test",
    "operator_tenants_test",
    "operator_truth_test",
)
_DEMO = (
    "crd_test",
    "model_test",
    "digits_training_test",
    "scenario_alone_test",
    "scenario_digits_test",
)

# fmt: off
_ROWS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # C++ and how it is built.
    ("*.cu", (CUDA, FORMAT, "kernels_sass_test")),
    ("*.cuh", (FROM_IT, FORMAT, CUDA, "kernels_sass_test")),
    ("tests/unit/cuda/*.py", ("kernels_sass_test",)),
    ("trainer/cuda/CMakeLists.txt", (OF_ITS_FOLDER, CUDA)),
    ("trainer/python/CMakeLists.txt", (*KERAS, "python_wheel_test")),
    ("*/CMakeLists.txt", (OF_ITS_FOLDER,)),
    ("*.map", (OF_ITS_FOLDER,)),
    ("operator/web/page/*.cmake", ("web_test", "page_test")),
    ("operator/web/page/*.js", ("web_test", "page_test", "simulator_report_test", "e2e_parts_test")),
    ("operator/web/page/*.css", ("web_test", "page_test", "simulator_report_test")),
    ("operator/web/page/*.html", ("web_test", "page_test", "simulator_report_test")),
    ("tests/unit/page/*", ("page_test",)),
    ("tests/e2e/picture.js", ("page_test", "e2e_parts_test")),
    ("*.c", (FROM_IT,)),
    ("*.cc", (FROM_IT, FORMAT)),
    ("*.h", (FROM_IT, FORMAT)),
    ("CMakeLists.txt", (ALL_TESTS, *IN_IMAGES, CUDA)),
    ("CMakePresets.json", (ALL_TESTS, *IN_IMAGES, CUDA)),
    ("cmake/*", (ALL_TESTS, *IN_IMAGES, CUDA)),
    ("Dockerfile", (EVERYTHING,)),
    (".clang-format", (FORMAT,)),
    # No test reads these.
    (".clang-tidy", ()),
    (".dockerignore", ()),
    (".gitignore", ()),
    (".ci/run", ()),
    ("dev", ()),
    # Documents.
    ("CHANGELOG.md", ("api_test",)),
    ("docs/install.md", (CHART,)),
    ("docs/metrics.md", ("metrics_document_test", "e2e_parts_test")),
    ("docs/python.md", ("python_examples_test",)),
    ("docs/fabric-model.md", ("python_examples_test",)),
    ("docs/keras.md", KERAS),
    ("docs/hugging-face.md", (TRAINERS,)),
    ("docs/lightning.md", (LIBRARIES,)),
    ("docs/python-api.md", ("python_state_test",)),
    ("trainer/python/README.md", ("python_wheel_test",)),
    ("docs/simulator.md", ("scenario_simulate_test",)),
    ("docs/kubectl-pliant.md", ("cli_test",)),
    ("docs/conditions.md", ("cli_test",)),
    ("cli/README.md", ("cli_test",)),
    ("docs/images/*", ()),
    ("*.md", ()),
    ("LICENSE", ("python_wheel_test", "cli_test")),
    ("NOTICE", ("python_wheel_test",)),
    # Files that Kubernetes reads.
    ("crds/*", (*_CRD, CHART)),
    ("helm/pliant/files/crds/*", ("crd_test", CHART)),
    ("helm/pliant/files/*", (CHART, ALERTS, "e2e_parts_test")),
    ("helm/pliant/*", (CHART,)),
    ("manifests/install.yaml", ("crd_test", CHART)),
    ("manifests/render", (CHART,)),
    ("manifests/examples/*", ("crd_test", "model_test", CHART)),
    ("manifests/demo/*", (*_DEMO, "e2e_parts_test", CHART, E2E)),
    ("manifests/quickstart/*", ()),  # for kind, which no test has
    # Examples.
    ("examples/finetune/Dockerfile", (HUGGING_FACE, TRAINERS, LIBRARIES)),
    ("examples/finetune/train.py", (TRAINERS,)),
    ("examples/keras_cnn/*.py", (*_EXAMPLES, *KERAS)),
    ("examples/char_transformer/*.py", (*_EXAMPLES, E2E)),
    ("examples/char_transformer/*", (CHART, E2E)),
    ("examples/*.py", _EXAMPLES),
    ("examples/*.yaml", (CHART,)),
    # The Python package.
    ("trainer/python/pliant/_keras/with_*.py", ("Keras over {0}", TYPES)),
    ("trainer/python/pliant/_keras/*", (*KERAS, TYPES, "python_state_test", "python_typing_test")),
    ("trainer/python/pliant/_torch/*",
     (SCRIPTS + "python", "Keras over torch", HUGGING_FACE, TRAINERS, TYPES)),
    ("trainer/python/pliant/keras.py", (*KERAS, TYPES, "python_state_test")),
    ("trainer/python/pliant/_hugging_face/*", (TRAINERS, TYPES)),
    ("trainer/python/pliant/_tracking/*", ("python_tracking_test", "python_state_test", LIBRARIES, TYPES)),
    ("trainer/python/pliant/accelerate.py", (TRAINERS, "python_state_test", TYPES)),
    ("trainer/python/pliant/transformers.py", (TRAINERS, "python_state_test", TYPES)),
    ("trainer/python/pliant/_data/*",
     ("python_data_elastic_test", "python_data_hugging_face_test", "python_data_web_test",
      HUGGING_FACE, TYPES)),
    ("trainer/python/pliant/*", (SCRIPTS + "python", *IN_IMAGES, TYPES)),
    ("trainer/python/compatibility/*",
     ("python_compatibility_test", "python_examples_test", *KERAS, TYPES)),
    ("trainer/python/api_page.py", ("python_state_test",)),
    ("trainer/python/pyproject.toml", ("python_wheel_test", TYPES)),
    ("trainer/python/build_backend/*", ("python_wheel_test",)),
    ("tests/python/pages.py", ("python_examples_test", *KERAS, TRAINERS)),
    ("tests/python/*keras*.py", KERAS),
    ("tests/python/test_hugging_face.py", (HUGGING_FACE,)),
    ("tests/python/*transformers*.py", (TRAINERS,)),
    ("tests/python/*trackers*.py", (LIBRARIES,)),
    ("tests/python/test_lightning.py", (LIBRARIES,)),
    ("tests/python/test_accelerate.py", (TRAINERS,)),
    ("tests/reach/*", (TRAINERS,)),
    ("tests/python/compatibility_program.py", ("python_compatibility_test",)),
    ("tests/python/data_program.py", ("python_data_elastic_test",)),
    ("tests/python/program.py", ("python_bad_input_test", "python_elastic_test")),
    ("tests/python/pairs_program.py", ("python_elastic_test",)),
    ("tests/python/resumable.py", ("python_frozen_test", "python_optimizers_test", HUGGING_FACE, TRAINERS)),
    (
        "tests/python/small_data.py",
        tuple(
            f"python_{name}_test"
            for name in ("attach", "frozen", "loaders", "loop", "misuse", "optimizers", "replaced", "steps")
        ),
    ),
    ("tests/python/test_*.py", ("python_{0}_test",)),
    # kubectl pliant.
    ("cli/*", ("cli_test", TYPES)),
    ("tests/cli/*", ("cli_test",)),
    # Scenarios and benches.
    ("tests/scenario/harness.py",
     (SCRIPTS + "scenario", "python_compatibility_test", "python_data_elastic_test", "python_elastic_test",
      "python_quiet_test", *KERAS)),
    ("tests/scenario/test_*.py", ("scenario_{0}_test",)),
    ("tests/scenario/planner/replay/*.json", ("replay_test",)),
    ("tests/scenario/planner/*.yaml", ("planner_scenarios",)),
    ("tests/gpu/*", (CUDA,)),
    ("tests/bench/trainer/*.py", ("bench_parts_test", "bench_smoke_test")),
    # Unit tests that are not C++, and the files that they read.
    ("tests/unit/metrics/alerts_test.yaml", (ALERTS, "e2e_parts_test")),
    ("tests/unit/metrics/gpus_test.yaml", (ALERTS,)),
    ("tests/unit/bench/*.py", ("bench_parts_test",)),
    ("tests/unit/cluster/*.py", ("dev_parts_test",)),
    ("tests/unit/docs/*.py", ()),
    ("tests/unit/e2e/*.py", ("e2e_parts_test",)),
    ("tests/data/pollux/*.csv", ("fidelity_test", "scenario_simulate_test", "simulator_test")),
    # The end-to-end story.
    ("tests/e2e/monitoring/prometheus.yaml", (ALERTS, "e2e_parts_test")),
    ("tests/e2e/monitoring/*", ("e2e_parts_test",)),
    ("tests/e2e/demo.py", ("e2e_parts_test",)),
    ("tests/e2e/dashboards.py", (ALERTS, "e2e_parts_test")),
    ("tests/e2e/story/dashboards.py", (ALERTS, "e2e_parts_test")),
    ("tests/e2e/story/chart.py", ("e2e_parts_test",)),
    ("tests/e2e/story/monitoring.py", ("e2e_parts_test",)),
    ("tests/e2e/*", ("e2e_parts_test", E2E)),
    # ./dev: its parts, and files that only the cluster can test.
    ("tests/cluster/crash_test.py", (KILLS,)),
    ("tests/cluster/faults.py", _DEV),
    ("tests/cluster/seeded_faults.py", _DEV),
    ("tests/cluster/pliantdev_test.py", _DEV),
    ("tests/cluster/prometheus.Dockerfile", (ALERTS,)),
    ("tests/cluster/libraries.Dockerfile", (LIBRARIES,)),
    ("tests/cluster/newest.Dockerfile", ()),  # in ./dev test all
    ("tests/cluster/keras.Dockerfile", ("Keras over torch", "Keras over jax")),
    ("tests/cluster/python.Dockerfile", (*IN_IMAGES, E2E)),
    ("tests/cluster/helm/*", (CHART,)),
    ("tests/cluster/kubernetes/*", (SET + "integration", CHART, E2E)),
    ("tests/cluster/pliantdev/chart.py", (*_DEV, CHART)),
    ("tests/cluster/pliantdev/openapi.py", (*_DEV, CHART)),
    ("tests/cluster/pliantdev/prometheus.py", (*_DEV, ALERTS)),
    ("tests/cluster/pliantdev/scraping.py", (*_DEV, ALERTS)),
    ("tests/cluster/pliantdev/python_image_tests.py", (*_DEV, *IN_IMAGES)),
    ("tests/cluster/pliantdev/gpu_pack.py", (*_DEV, CUDA)),
    ("tests/cluster/pliantdev/source_checks.py", (*_DEV, FORMAT, TYPES)),
    ("tests/cluster/pliantdev/ctest.py", (*_DEV, "kube_api_test")),
    ("tests/cluster/pliantdev/control_plane.py", (*_DEV, "kube_api_test", CHART, E2E)),
    *((f"tests/cluster/pliantdev/{name}.py", _DEV) for name in (
        "bench", "changed", "changes", "ci", "cli", "cmake_reply", "code_graph", "commands",
        "counts", "errors", "file_map", "history", "moments", "own_cluster", "parts", "processors",
        "progress", "record", "rows", "selection", "source_tree", "testing")),
    ("tests/cluster/*", (*_DEV, E2E)),
)
# fmt: on


_COMPILED = [
    (re.compile("(.*)".join(re.escape(part) for part in pattern.split("*"))), pattern, found)
    for pattern, found in _ROWS
]


def readers(file: str) -> tuple[str, ...] | None:
    """The readers of a file; None: no row matches it."""
    for expression, _, found in _COMPILED:
        if match := expression.fullmatch(file):
            return tuple(reader.format(*match.groups()) for reader in found)
    return None


def pattern_of(file: str) -> str | None:
    """The pattern of the row that counts for the file."""
    return next((row for expression, row, _ in _COMPILED if expression.fullmatch(file)), None)


def patterns() -> list[str]:
    return [pattern for pattern, _ in _ROWS]
