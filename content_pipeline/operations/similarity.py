"""Similarity: whether a draft says what another page of the site says already.

What belongs here: comparing the draft's vector with those of the accepted drafts, exactly, in the
transaction that accepts it. Costs nothing: the vector was paid for as a step of the chain.
"""

from sqlalchemy import Connection

from content_pipeline.core.validation import Finding
from content_pipeline.core.vectors import nearest
from content_pipeline.ledger import vectors
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.operations.runtime import SiteRuntime

RULE = "max_similarity"


def similarity_findings(
    connection: Connection, runtime: SiteRuntime, job: PageJob
) -> tuple[Finding, ...]:
    """The other page that the draft of ``job`` is too similar to; empty where none is."""
    limit, step = runtime.site.article.rules.max_similarity, runtime.chain.embedding
    if limit is None or step is None:
        return ()
    vectors.one_at_a_time(connection, job.site)
    vector = vectors.of_job(connection, job.page_job_id)
    if vector is None:
        return (Finding(rule=RULE, detail="the draft has no vector; have the page made anew"),)
    others = vectors.accepted_elsewhere(
        connection, job, model_identity=step.model_identity, size=len(vector)
    )
    found = nearest(vector, runtime.known_vectors.of(connection, others))
    if found is None or found[1] <= limit:
        return ()
    return (Finding(rule=RULE, detail=_told(others[found[0]].path, found[1], limit)),)


def _told(path: str, similarity: float, limit: float) -> str:
    return f"too similar ({similarity:.3f}) to {path}; at most {limit:g} is allowed"
