"""What a job's owner can do, by the planner's code of the reason, and what the limits of a job mean. No I/O."""

from __future__ import annotations

_MORE_PRIORITY = "For more, raise its priority: kubectl pliant priority {job} N."
_WAIT_OR_LOWER = "Wait, or lower spec.elastic.minLearners, so that it starts with fewer GPUs."
_LOWER_MINIMUM = "Lower spec.elastic.minLearners."
_HISTORY = "Read what happened before: kubectl pliant history {job}."

# By the reason of condition HasPlace. docs/conditions.md has all of them; None: there is nothing to do.
BY_REASON: dict[str, str | None] = {
    "FairShare": _MORE_PRIORITY,
    "BelowShare": "To start before others next time, ask an administrator for a guarantee of the queue.",
    "Maximum": "For more, raise maxLearners: kubectl pliant scale {job} N.",
    "Minimum": None,
    "NoFasterSize": None,
    "MinEfficiency": "For more, lower spec.elastic.minEfficiency.",
    "ShardLimit": "Only a new job with more training.logicalShards can use more GPUs.",
    "ProgramAsked": "For more, let the program ask for more with pliant.request_learners.",
    "NodesFull": "It grows when GPUs become free on nodes that it fits.",
    "Quota": "Ask for a larger ResourceQuota of the namespace, or lower spec.elastic.minLearners.",
    "Cooldown": None,
    "MinRuntime": None,
    "Yields": None,
    "GrantWithdrawn": _HISTORY,
    "BelowMinimum": "It is queued if its minimum does not become free within five minutes. " + _LOWER_MINIMUM,
    "Released": "Wait: it continues at the same step when its minimum is free. " + _LOWER_MINIMUM,
    "Reclaimed": "Wait: it continues at the same step when GPUs are free.",
    "Borrowed": "GPUs that others leave over may be taken back at any time; a guarantee of the queue keeps them.",
    "Reserved": "Wait, or ask the administrator, who reserves GPUs or limits loans.",
    "QueueLimit": "Ask the administrator for a higher TrainingQueue.spec.limit, or lower spec.elastic.minLearners.",
    "Queued": _WAIT_OR_LOWER,
    "QueuedBehind": _WAIT_OR_LOWER,
    "QueueShare": "Lower spec.elastic.minLearners, or wait for GPUs that other queues leave.",
    "QueueStopped": "Ask the administrator, who has stopped the queue (TrainingQueue.spec.stop).",
    "QueueMissing": "Correct spec.queue while the job is suspended, or ask for the queue to be created.",
    "QueueRefused": "Name another queue while the job is suspended, or ask the administrator.",
    "PoolMissing": "Ask the administrator to create the pool of its queue.",
    "NoNodeFits": "Compare nodeSelector, affinity, tolerations, CPU and memory of the template with the nodes.",
    "NodesTaken": "Wait, or let the template accept more nodes: pods of others use those that it fits.",
    "TooLarge": _LOWER_MINIMUM,
    "Suspended": "Resume it: kubectl pliant resume {job}.",
    "Finished": None,
}

# status.share.limitedBy: what keeps a job with GPUs from more learners, apart from cooldowns.
LIMITS: dict[str, str] = {
    "Maximum": "it has all learners that it asks for (maxLearners)",
    "Shards": "its logical shards keep no more GPUs busy",
    "Program": "its program asked for no more learners",
    "Speed": "by its measured speeds, more learners do not make it faster",
    "Efficiency": "more learners would run below its minEfficiency",
    "StartFailures": "more learners were granted and did not start in time",
    "Others": "the other jobs have a right to the rest",
    "Sizes": "its next larger size needs more GPUs than are left",
    "Nodes": "the nodes that it fits are full",
    "Quota": "the ResourceQuotas of its namespace leave its jobs no more GPUs",
    "QueueLimit": "its queue may hold no more GPUs (TrainingQueue.spec.limit)",
    "Reserved": "the GPUs that are left are reserved for others",
}
