"""Starts the local cluster, with or without the operator."""

from . import assets, cluster, preflight, product, source_tree
from .progress import phase, say
from .settings import REPO


def up(commit: str | None = None) -> product.ProductImages:
    """`commit`: a result of source_tree.resolve; its operator is installed instead of the present
    one."""
    preflight.check(cluster=True)
    made = assets.build()
    if commit:
        source = source_tree.at(commit)
        images = product.build_images_at(commit)
    else:
        source = REPO
        images = product.build_images()
    with phase("Starting the cluster", "about 15 s"):
        cluster.up(made.node_files, made.pause_archive)
    for image in (images.operator, images.learner):
        product.load_image(image)
    product.install(made.node_files.programs, images, source)
    say("ready: ./dev kubectl get elastictrainingjobs --all-namespaces; ./dev down ends it")
    return images


def cluster_only() -> None:
    preflight.check(cluster=True)
    made = assets.build()
    with phase("Starting the cluster", "about 15 s"):
        cluster.up(made.node_files, made.pause_archive)
