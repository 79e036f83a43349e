"""A ledger as years of work leave it, made by the database itself in seconds or minutes.

What belongs here: the rows of one site in realistic states. Of 1,000 pages 980 are published; the
others wait for a retry, a budget or the other side's word, failed, or were taken off.
No page is due: that is when a sensor has to look
furthest. Page 1 is the newest, and each other an hour older.
"""

from sqlalchemy import Connection, Engine, text

from content_pipeline.ledger.schema import SCHEMA

GENERATION_VERSION = "filled"
ANNOUNCEMENTS = 2_000
"""What a site's hooks were told in some years; one is pending, and due later."""

_STATE = """
    CASE WHEN i % 1000 < 980 THEN 'published' WHEN i % 1000 < 990 THEN 'failed_retryable'
         WHEN i % 1000 < 993 THEN 'failed_terminal' WHEN i % 1000 < 995 THEN 'dead_lettered'
         WHEN i % 1000 = 995 THEN 'publish_uncertain'
         WHEN i % 1000 = 996 THEN 'generation_uncertain'
         WHEN i % 1000 = 997 THEN 'ready_to_publish' WHEN i % 1000 = 998 THEN 'withdrawn'
         ELSE 'queued' END"""

_SITE = f"""
    INSERT INTO {SCHEMA}.sites (site, title, base_url, owner)
    VALUES (:site, 'Large', 'https://large.example', 'team') ON CONFLICT DO NOTHING"""

_PAGES = f"""
    INSERT INTO {SCHEMA}.pages (page_id, site, path, topic_key, last_revision, published_revision,
        published_content_hash, published_title, remote_id, remote_fingerprint, content_changed_at,
        verified_at, first_public_at)
    SELECT :site || '-p' || i, :site, '/' || i || '/', 'k' || i, 1,
           CASE WHEN i % 1000 < 980 THEN 1 END, 'c' || i, 'Page ' || i, :site || i,
           CASE WHEN i % 1000 < 980 THEN 'f' || i END, now() - interval '9 days', now(),
           now() - make_interval(hours => 24 + i)
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i"""

_TOPICS = f"""
    INSERT INTO {SCHEMA}.topics (site, topic_key, name, row_number, status, page_id, input_hash,
        current_job_id)
    SELECT :site, 'k' || i, 'Page ' || i, i, 'active', :site || '-p' || i, 'h' || i,
           :site || '-j' || i
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i"""

_JOBS = f"""
    INSERT INTO {SCHEMA}.page_jobs (page_job_id, site, topic_key, page_id, state, sequence,
        input_hash, input_columns, generation_version, owner, requested_by, priority, revision,
        failure_class, failure_message, next_attempt_at, finished_at, deadline_at, waits_for_usd)
    SELECT :site || '-j' || i, :site, 'k' || i, :site || '-p' || i, state, 1, 'h' || i, '{{}}',
           :version, 'team', 'test', CASE WHEN i % 7 = 0 THEN 5 ELSE 0 END,
           CASE WHEN state IN ('published', 'publish_uncertain', 'ready_to_publish', 'withdrawn')
                THEN 1 END,
           CASE WHEN state = 'failed_retryable'
                THEN CASE WHEN i % 2 = 0 THEN 'budget' ELSE 'transient' END
                WHEN state IN ('failed_terminal', 'dead_lettered') THEN 'policy'
                WHEN state LIKE '%uncertain' THEN 'uncertain'
                WHEN state = 'ready_to_publish' THEN 'throttled' END,
           CASE WHEN state NOT IN ('published', 'withdrawn', 'queued') THEN 'it waits' END,
           now() + make_interval(secs => 3600 + i % 86400),
           CASE WHEN state IN ('published', 'failed_terminal', 'dead_lettered', 'withdrawn')
                THEN now() - make_interval(secs => i) END,
           now() + interval '14 days',
           CASE WHEN state = 'failed_retryable' AND i % 2 = 0 THEN 1000 END
    FROM (SELECT i, {_STATE} AS state
          FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i) n"""

_ATTEMPTS = f"""
    INSERT INTO {SCHEMA}.attempts (attempt_id, page_job_id, kind, step, number, epoch, state,
        worker, generation_version, input_hash, model, input_tokens, output_tokens, started_at,
        finished_at, failure_class, failure_message, failure_explanation)
    SELECT :site || '-a' || kind || i, :site || '-j' || i, kind, 'article', 1, 1,
           CASE WHEN failed THEN 'failed' ELSE 'succeeded' END, 'w', :version, 'h' || i, 'm',
           900, 700, now() - make_interval(hours => i), now() - make_interval(hours => i),
           CASE WHEN failed THEN 'policy' END, CASE WHEN failed THEN 'no' END,
           CASE WHEN failed THEN 'no' END
    FROM (SELECT i, kind, i % 1000 BETWEEN 990 AND 994 AS failed
          FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i,
               (VALUES ('generate'), ('publish')) k(kind)) n"""

_SPEND = f"""
    INSERT INTO {SCHEMA}.spend (attempt_id, site, page_job_id, day, state, reserved_usd,
        settled_usd)
    SELECT :site || '-agenerate' || i, :site, :site || '-j' || i,
           current_date - 1 - (i / 24), 'settled', 0.02, 0.004
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i"""

_EFFECTS = f"""
    INSERT INTO {SCHEMA}.effects (effect_key, site, kind, page_id, page_job_id, revision, owner,
        state, attempts, outcome, result_reference)
    SELECT 'page-' || :site || i, :site, 'publish', :site || '-p' || i,
           :site || '-j' || i, 1, 'team', 'done', 1, 'created', 'r' || i
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i"""

_TRANSITIONS = f"""
    INSERT INTO {SCHEMA}.transitions (page_job_id, sequence, to_state, why, worker, at)
    SELECT :site || '-j' || i, 1, {_STATE}, 'filled', 'test', now() - make_interval(hours => i)
    FROM generate_series(CAST(:first AS int), CAST(:last AS int)) i"""

_ANNOUNCED = f"""
    INSERT INTO {SCHEMA}.effects (effect_key, site, kind, owner, state, attempts, outcome,
        next_attempt_at, failure_class)
    SELECT 'site-' || :site || i, :site, 'sitemap', 'team',
           CASE i WHEN 1 THEN 'pending' WHEN 2 THEN 'failed' ELSE 'done' END, 1,
           CASE WHEN i > 2 THEN 'changed' END, now() + interval '1 hour',
           CASE i WHEN 2 THEN 'policy' END
    FROM generate_series(1, CAST(:announcements AS int)) i"""

_TABLES = ("pages", "topics", "page_jobs", "attempts", "spend", "effects", "transitions")


def fill(
    server: Engine, site: str, first: int, last: int, *, announcements: int = ANNOUNCEMENTS
) -> None:
    """Pages number ``first`` to ``last`` of ``site``, counted by the planner afterwards.

    ``server``: as a superuser, because the ledger's triggers want every move made one by one.
    """
    values = {"site": site, "first": first, "last": last, "version": GENERATION_VERSION}
    statements = (_SITE, _PAGES, _TOPICS, _JOBS, _ATTEMPTS, _SPEND, _EFFECTS, _TRANSITIONS)
    with server.begin() as connection:
        without_guards(connection)
        for statement in statements:
            connection.execute(text(statement), values)
        connection.execute(text(_ANNOUNCED), values | {"announcements": announcements})
    count(server)


def without_guards(connection: Connection) -> None:
    """For this transaction, no trigger and no foreign key looks at what is written."""
    connection.execute(text("SET LOCAL session_replication_role = replica"))


def count(server: Engine) -> None:
    """Have the planner know the tables as they are now."""
    names = ", ".join(f"{SCHEMA}.{name}" for name in _TABLES)
    with server.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(text(f"VACUUM ANALYZE {names}"))
