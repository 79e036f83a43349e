"""Tables of what was sent outside: effects (the outbox), attempts, raw answers, leases, routes."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.throttling import START
from content_pipeline.ledger.schema.vocabulary import (
    AnswerSource,
    AttemptKind,
    AttemptState,
    EffectState,
    Time,
    created,
    metadata,
    one_of,
)

effects = Table(
    "effects",
    metadata,
    Column("effect_key", Text, primary_key=True),
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("page_id", Text, ForeignKey("pages.page_id")),
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id")),
    Column("revision", Integer),
    Column("owner", Text, nullable=False),
    Column("request_hash", Text),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("absent_looks", Integer, nullable=False, server_default=text("0")),
    Column("unknown_looks", Integer, nullable=False, server_default=text("0")),
    Column("outcome", Text),
    Column("result_reference", Text),
    Column("failure_class", Text),
    Column("failure_message", Text),
    Column("next_attempt_at", Time, nullable=False, server_default=func.now()),
    created(),
    Column("requested_at", Time, nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", Time, nullable=False, server_default=func.now()),
    Column("finished_at", Time),
    CheckConstraint(one_of("state", EffectState), name="state"),
    CheckConstraint("(state = 'done') = (outcome IS NOT NULL)", name="done_has_outcome"),
    CheckConstraint("state <> 'failed' OR failure_class IS NOT NULL", name="failed_says_why"),
    Index(
        "effects_one_pending_site_effect_key",
        "site",
        "kind",
        unique=True,
        postgresql_where=text("page_id IS NULL AND state = 'pending'"),
    ),
    Index("effects_page_id_idx", "page_id", "revision"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("step", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("worker", Text, nullable=False),
    Column("run_id", Text),
    Column("effect_key", Text, ForeignKey("effects.effect_key")),
    Column("generation_version", Text, nullable=False),
    Column("input_hash", Text, nullable=False),
    Column("revision", Integer),
    Column("output_hash", Text),
    Column("model", Text),
    Column("request_id", Text),
    Column("response_id", Text),
    Column("failure_class", Text),
    Column("failure_message", Text),
    Column("failure_explanation", Text),
    Column("failure_code", Text),
    Column("failure_type", Text),
    Column("http_status", Integer),
    Column("input_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("cache_write_tokens", Integer),
    Column("output_tokens", Integer),
    Column("reasoning_tokens", Integer),
    Column("service_tier", Text),
    Column("recovered", Boolean, nullable=False, server_default=false()),
    Column("started_at", Time, nullable=False, server_default=func.clock_timestamp()),
    Column("answer_by", Time),
    Column("finished_at", Time),
    Column("latency_s", Float),
    Column("api", Text),
    UniqueConstraint("page_job_id", "kind", "number"),
    CheckConstraint(one_of("kind", AttemptKind), name="kind"),
    CheckConstraint(one_of("state", AttemptState), name="state"),
    CheckConstraint(f"api IS NULL OR {one_of('api', GenerationAPI)}", name="api"),
    CheckConstraint(
        f"failure_class IS NULL OR {one_of('failure_class', FailureClass)}", name="failure_class"
    ),
    CheckConstraint(
        "state NOT IN ('failed', 'uncertain') OR (failure_class IS NOT NULL AND "
        "failure_message IS NOT NULL AND failure_explanation IS NOT NULL)",
        name="failed_says_why",
    ),
    CheckConstraint("(state = 'open') = (finished_at IS NULL)", name="finished"),
    Index(
        "attempts_one_open_key",
        "page_job_id",
        unique=True,
        postgresql_where=text("state = 'open'"),
    ),
)

attempt_responses = Table(
    "attempt_responses",
    metadata,
    Column("attempt_id", Text, ForeignKey("attempts.attempt_id"), nullable=False),
    Column("source", Text, nullable=False),
    Column("http_status", Integer, nullable=False),
    Column("headers", JSONB, nullable=False),
    Column("body", LargeBinary, nullable=False),
    created(),
    PrimaryKeyConstraint("attempt_id", "source"),
    CheckConstraint(one_of("source", AnswerSource), name="source"),
    comment="The raw answer of a paid call, committed before anything parses it",
)

leases = Table(
    "leases",
    metadata,
    Column("resource", Text, primary_key=True),
    Column("token", BigInteger, nullable=False, unique=True),
    Column("worker", Text, nullable=False),
    Column("acquired_at", Time, nullable=False, server_default=func.clock_timestamp()),
    Column("expires_at", Time, nullable=False),
)

routes = Table(
    "routes",
    metadata,
    Column("route", Text, primary_key=True),
    Column("paused_until", Time),
    Column("pause_reason", Text),
    Column("circuit_class", Text),
    Column("circuit_message", Text),
    Column("circuit_opened_at", Time),
    created(),
    Column("updated_at", Time, nullable=False, server_default=func.now()),
    CheckConstraint(
        "(circuit_class IS NULL) = (circuit_message IS NULL) AND "
        "(circuit_class IS NULL) = (circuit_opened_at IS NULL)",
        name="circuit_says_why",
    ),
    comment="One row per account at a service: what every machine must heed before it calls",
)

call_limits = Table(
    "call_limits",
    metadata,
    Column("route", Text, primary_key=True),
    Column("limit", Integer, nullable=False, server_default=text(f"{START}")),
    Column("calls", ARRAY(Float), nullable=False, server_default=text("'{}'")),
    Column("rejections", ARRAY(Float), nullable=False, server_default=text("'{}'")),
    created(),
    Column("updated_at", Time, nullable=False, server_default=func.now()),
    CheckConstraint('"limit" >= 1', name="limit"),
    CheckConstraint("cardinality(calls) = cardinality(rejections)", name="counts"),
    comment="One row per account at a provider: how many calls may be out at once",
)
