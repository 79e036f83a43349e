"""What the database refuses: moves outside the table, gaps in the log, changes to the log.

The list of moves is the state of ``core.states.MOVES`` on the day of this migration; a later change
of it comes with a migration of its own, and a test compares the two.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MOVES = [
    ("queued", "reserved", "a worker holds the page, the worst case is reserved"),
    ("reserved", "generating", "the intent of the paid call is committed"),
    ("generating", "generated", "the answer is paid, stored and an article"),
    ("generated", "validating", "the site's rules are applied"),
    ("validating", "ready_to_publish", "no rule is broken"),
    ("ready_to_publish", "publishing", "the intent of the publish is committed"),
    ("publishing", "published", "the CMS was read back and holds this revision"),
    ("queued", "failed_retryable", "a cap does not allow the call yet"),
    ("reserved", "failed_retryable", "the call could not be prepared"),
    ("generating", "failed_retryable", "the provider failed in a way worth another try"),
    ("ready_to_publish", "failed_retryable", "the publish could not be prepared"),
    ("publishing", "failed_retryable", "the CMS failed before anything was written"),
    ("failed_retryable", "queued", "the wait is over; there is no draft yet"),
    ("failed_retryable", "ready_to_publish", "the wait is over; the draft is kept"),
    ("generating", "generation_uncertain", "the call was sent and its answer is lost"),
    ("generation_uncertain", "generated", "the provider had the answer: it is recovered"),
    ("generation_uncertain", "queued", "no answer exists or can be had; one more may be paid"),
    ("publishing", "publish_uncertain", "the write was sent and its answer is lost"),
    ("publish_uncertain", "published", "the CMS holds the revision: nothing is written again"),
    ("publish_uncertain", "ready_to_publish", "the CMS proved that nothing was written"),
    ("queued", "failed_terminal", "the input or a rule of the site forbids the page"),
    ("reserved", "failed_terminal", "the call cannot be made as configured"),
    ("generating", "failed_terminal", "the provider refuses for good"),
    ("generation_uncertain", "failed_terminal", "what came back can never become a page"),
    ("validating", "failed_terminal", "the draft breaks a rule"),
    ("ready_to_publish", "failed_terminal", "the target is not ours to write"),
    ("publishing", "failed_terminal", "the CMS refuses for good, or somebody changed the page"),
    ("publish_uncertain", "failed_terminal", "the CMS's word stays unclear"),
    ("queued", "dead_lettered", "the tries or the money for this page job are used up"),
    ("generating", "dead_lettered", "the tries are used up"),
    ("generation_uncertain", "dead_lettered", "the paid tries are used up"),
    ("publishing", "dead_lettered", "the tries are used up"),
    ("queued", "cancelled", "cancelled before anything was paid"),
    ("reserved", "cancelled", "cancelled before the call"),
    ("generated", "cancelled", "cancelled; the paid draft is kept"),
    ("validating", "cancelled", "cancelled; the paid draft is kept"),
    ("ready_to_publish", "cancelled", "cancelled before publishing"),
    ("failed_retryable", "cancelled", "cancelled while waiting"),
    ("queued", "superseded", "newer input is wanted; nothing was paid"),
    ("reserved", "superseded", "newer input is wanted; nothing was paid"),
    ("generated", "superseded", "newer input is wanted; the draft is kept"),
    ("validating", "superseded", "newer input is wanted; the draft is kept"),
    ("ready_to_publish", "superseded", "a newer revision is wanted or already live"),
    ("publishing", "superseded", "the CMS already holds a newer revision"),
    ("publish_uncertain", "superseded", "the CMS already holds a newer revision"),
    ("failed_retryable", "superseded", "newer input is wanted"),
    ("published", "superseded", "a newer revision is live and proved"),
    ("superseded", "queued", "this input is wanted again; it never had a draft"),
    ("superseded", "generated", "this input is wanted again; its draft is reused"),
    ("failed_terminal", "queued", "repaired; there is no usable draft"),
    ("failed_terminal", "generated", "repaired; the draft is kept and checked again"),
    ("dead_lettered", "queued", "repaired; there is no usable draft"),
    ("dead_lettered", "generated", "repaired; the draft is kept and checked again"),
    ("cancelled", "queued", "wanted again; there is no usable draft"),
    ("cancelled", "generated", "wanted again; the draft is kept and checked again"),
]

GUARDS = """
CREATE FUNCTION content_pipeline.refuse_illegal_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.sequence <> 1 OR NEW.state NOT IN ('queued', 'failed_terminal') THEN
            RAISE EXCEPTION 'page job % cannot begin as %', NEW.page_job_id, NEW.state
                USING ERRCODE = 'check_violation';
        END IF;
    ELSIF NEW.sequence <> OLD.sequence + 1 OR NOT EXISTS (
        SELECT FROM content_pipeline.allowed_moves
        WHERE from_state = OLD.state AND to_state = NEW.state
    ) THEN
        RAISE EXCEPTION 'page job % may not move from % to %',
            NEW.page_job_id, OLD.state, NEW.state USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER page_jobs_begin BEFORE INSERT ON content_pipeline.page_jobs
    FOR EACH ROW EXECUTE FUNCTION content_pipeline.refuse_illegal_move();
CREATE TRIGGER page_jobs_move BEFORE UPDATE ON content_pipeline.page_jobs
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state OR OLD.sequence <> NEW.sequence)
    EXECUTE FUNCTION content_pipeline.refuse_illegal_move();

CREATE FUNCTION content_pipeline.refuse_unlogged_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM content_pipeline.transitions
        WHERE page_job_id = NEW.page_job_id AND sequence = NEW.sequence AND to_state = NEW.state
    ) THEN
        RAISE EXCEPTION 'page job % moved to % without a row in transitions',
            NEW.page_job_id, NEW.state USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER page_jobs_logged AFTER INSERT OR UPDATE OF state
    ON content_pipeline.page_jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION content_pipeline.refuse_unlogged_move();

CREATE FUNCTION content_pipeline.refuse_rewriting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER transitions_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON content_pipeline.transitions
    FOR EACH STATEMENT EXECUTE FUNCTION content_pipeline.refuse_rewriting();
"""


def upgrade() -> None:
    moves = sa.table(
        "allowed_moves",
        sa.column("from_state"),
        sa.column("to_state"),
        sa.column("why"),
        schema="content_pipeline",
    )
    op.bulk_insert(
        moves, [{"from_state": source, "to_state": to, "why": why} for source, to, why in MOVES]
    )
    op.execute(GUARDS)


def downgrade() -> None:
    op.execute("DROP TRIGGER transitions_append_only ON content_pipeline.transitions")
    op.execute("DROP TRIGGER page_jobs_logged ON content_pipeline.page_jobs")
    op.execute("DROP TRIGGER page_jobs_move ON content_pipeline.page_jobs")
    op.execute("DROP TRIGGER page_jobs_begin ON content_pipeline.page_jobs")
    for function in ("refuse_rewriting", "refuse_unlogged_move", "refuse_illegal_move"):
        op.execute(f"DROP FUNCTION content_pipeline.{function}")
    op.execute("DELETE FROM content_pipeline.allowed_moves")
