"""How much of its speed a job keeps when it has more learners. No I/O."""

from __future__ import annotations

from .job import Job


def efficiency(job: Job) -> float | None:
    """The measured speed per learner with the job's present learners, divided by that with the fewest learners that
    were measured. Where one number of learners was measured on several numbers of nodes, its highest speed counts."""
    fastest: dict[int, float] = {}
    for each in job.speeds:
        fastest[each.learners] = max(each.samples_per_second, fastest.get(each.learners, 0.0))
    if not job.learners or job.learners not in fastest:
        return None
    fewest = min(fastest)
    return fastest[job.learners] / job.learners / (fastest[fewest] / fewest)
