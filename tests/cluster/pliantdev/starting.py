"""Starts the local cluster, with the present source's operator in it or bare."""

from . import assets, cluster, preflight, product
from .progress import phase, say


def up() -> product.ProductImages:
    preflight.check(cluster=True)
    made = assets.build()
    images = product.build_images()
    with phase("Starting the cluster", "about 15 s"):
        cluster.up(made.node_files, made.pause_archive)
    for image in (images.operator, images.learner):
        product.load_image(image)
    product.install(made.node_files.programs, images)
    say("ready: ./dev kubectl get elastictrainingjobs --all-namespaces; ./dev down ends it")
    return images


def cluster_only() -> None:
    preflight.check(cluster=True)
    made = assets.build()
    with phase("Starting the cluster", "about 15 s"):
        cluster.up(made.node_files, made.pause_archive)
