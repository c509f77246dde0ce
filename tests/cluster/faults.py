"""Faults to seed, one line each. Some test must find each of them: seeded_faults.py checks that.

Each replaces a text that its file contains exactly once; tests/unit/cluster/test_faults.py compares
the table with the files. If such a line changes, update its row or choose another line.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    file: str
    right: str
    wrong: str

    @property
    def name(self) -> str:
        return f"{self.file}: {self.wrong.strip() or 'nothing'}"


def apply(text: str, fault: Fault) -> str:
    found = text.count(fault.right)
    if found != 1:
        raise ValueError(f"{fault.file} has {fault.right!r} {found} times, once is needed")
    return text.replace(fault.right, fault.wrong)


# fmt: off
FAULTS = tuple(Fault(*row) for row in (
    # base
    ("base/divide.h", "(number % divisor != 0 ? 1 : 0)", "1"),
    ("base/utf8.cc", "cut.size() + character.size() > max_bytes",
     "cut.size() + character.size() >= max_bytes"),
    ("base/mailbox.h", "items_.empty() || stop.stop_requested()) return", "items_.empty()) return"),
    ("base/http_server.cc", 'ErrorResponse(405, "this path', 'ErrorResponse(404, "this path'),
    ("base/http_server.cc", "conversations_ >= self->options_.max_connections",
     "conversations_ > self->options_.max_connections"),
    # operator
    ("operator/api/quantity.cc", '{"Mi", 0x1p20}', '{"Mi", 1e6}'),
    ("operator/api/job_spec_codec.cc", "spec.priority_asked = spec.priority", "spec.priority"),
    ("operator/planner/feasibility.cc", "return !listed();", "return present && !listed();"),
    ("operator/planner/filling.cc", "other.precedence, other.claim", "other.precedence, claim"),
    ("operator/kube/line_splitter.cc", "begun_.size() + part.size() >", "part.size() >"),
    ("operator/kube/work_queue.cc", "if (dirty_.contains(key)) Enqueue",
     "if (processing_.contains(key)) Enqueue"),
    ("operator/controller/lifecycle/failure_policy.cc", "verdict.failures.count > policy.max_failures",
     "verdict.failures.count >= policy.max_failures"),
    ("operator/web/routes.cc", "{.status = 503,", "{.status = 500,"),
    ("operator/web/access_review.cc", 'IsTrue(*status, "allowed") && ', ""),
    ("base/host_port.cc", "text.data() + colon + 1", "text.data() + colon + 2"),
    # trainer
    ("trainer/membership/rules.cc", "against(id) >= against(*worst)", "against(id) > against(*worst)"),
    ("trainer/checkpoint/manifest.cc", "file.name.front() == '.' || ", ""),
    ("trainer/collective/frame_format.cc", "Store(&head[40], header.piece)",
     "Store(&head[40], header.node)"),
    ("trainer/cuda/nccl_loader.cc", "22703;", "21300;"),
    ("trainer/collective/reduction_plan.cc", "source == piece ? means_", "source != self_ ? means_"),
    ("trainer/cuda/kernels.cuh", "node = Add(waiting[level], node)", "node = Add(node, node)"),
    ("trainer/protocol/work_split.cc", "shard < 2 * pairs", "shard < pairs"),
    ("trainer/process/learner_environment.cc", "value < least || value > most", "value > most"),
    ("trainer/coordinator/counter_file.cc", "content.term > term_", "content.term < term_"),
    ("trainer/learner/train_spec.cc", "(1 + std::cos", "(1 - std::cos"),
    ("trainer/tools/checkpoint_tool.cc", 'state ? "verified" : "damaged"',
     'state ? "damaged" : "verified"'),
    # The Python package and its examples
    ("trainer/python/pliant/_seeds.py", "def mix(*words: int) -> int:",
     "def mix(*words: int) -> str:"),
    ("trainer/python/pliant/_torch/optimizer_state.py", "if unknown:", "if not unknown:"),
    ("trainer/python/pliant/_keras/with_jax.py", "_set(variables, values)",
     "_set(variables, _values(variables))"),
    ("trainer/python/compatibility/emetrics.py", 'TEST_GROUP = "test"', 'TEST_GROUP = "tests"'),
    ("examples/char_transformer/train.py", "return piece[:-1], piece[1:]",
     "return piece[:-1], piece[2:]"),
    # Files that Kubernetes and Prometheus read
    ("crds/pliant.dev_elastictrainingjobs.yaml", "maximum: 10000\n", "maximum: 1000\n"),
    ("crds/pliant.dev_trainingqueues.yaml", "self.guaranteed <= self.limit",
     "self.guaranteed < self.limit"),
    ("helm/pliant/templates/rbac.yaml", "resources: [nodes]", "resources: [pods]"),
    ("helm/pliant/files/alerts.yaml", "reconcile_total[10m])) > 0.2",
     "reconcile_total[10m])) > 0.9"),
    ("helm/pliant/values.yaml", "replicas: 2", "replicas: two"),
    ("manifests/demo/model.yaml", "- linear: {out: 10}", "- linear: {outputs: 10}"),
    # Documents
    ("docs/tasks/submit-a-job.md", "| `spec.priority` |", "| `spec.weight` |"),
    ("docs/python-api.md", "is made of the docstrings", "is made of docstrings"),
    # Tests and their tools
    ("tests/kube/selectors.cc", "(lookup(name) == std::string(value))",
     "(lookup(name) != std::string(value))"),
    ("tests/cluster/pliantdev/counts.py", "match and (exit_status == 0 or counts.failed)", "match"),
    ("tests/cluster/pliantdev/selection.py", "graph.affected(targets)", "frozenset(targets)"),
    ("tests/e2e/story/checks.py", "worst.gpus_held > gpus_total", "worst.gpus_held < gpus_total"),
    ("tests/e2e/story/table.py", "cell.rjust(size)", "cell.ljust(size)"),
    ("tests/bench/trainer/quantiles.py", "sorted(measured)", "list(measured)"),
))
# fmt: on
