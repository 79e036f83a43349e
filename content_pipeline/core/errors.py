"""Every error the project raises on purpose, drawn as one tree.

    ContentPipelineError
    ├── ConfigurationError       a person must change a file, a flag or the environment
    │   ├── SiteFileError        ... in one site's YAML file: names file, line, key and the fix
    │   ├── TopicTableError      ... the table of topics cannot be read at all
    │   ├── UnknownPrice         ... the model has no price, so no worst case can be reserved
    │   └── LockHeld             ... another process keeps a lock that it should give back
    ├── DatabaseUnavailable      PostgreSQL cannot be reached or started
    ├── CallFailed               an outward call brought no usable result; carries a Failure
    ├── LeaseLost                another worker owns the page now: stop, write nothing
    ├── BudgetExhausted          the reservation would pass a cap: do not call
    │   ├── PageBudgetExhausted  ... of this page alone: waiting would not help
    │   └── CapTooSmall          ... that is too small for this call at any time
    └── UnknownPage              a person asked for a page the ledger does not know

What belongs here: classes only, no behaviour beyond carrying facts. A programming error (an
illegal move between states, say) is a plain ValueError where it happens, never one of these.
"""

from content_pipeline.core.failures import Failure


class ContentPipelineError(Exception):
    """Something expected went wrong; the message says what, where, and what to do."""


class ConfigurationError(ContentPipelineError):
    """A person must change a file, a flag or the environment before this can work."""


class SiteFileError(ConfigurationError):
    """One site's file is wrong; the message names file, line, key and the fix."""


class TopicTableError(ConfigurationError):
    """The table of topics as a whole cannot be used; a single bad row never raises this."""


class UnknownPrice(ConfigurationError):
    """No price is known for the model, so no worst case can be reserved and nothing is sent."""


class LockHeld(ConfigurationError):
    """Another process does not give a lock back."""


class DatabaseUnavailable(ContentPipelineError):
    """PostgreSQL cannot be reached or started."""


class CallFailed(ContentPipelineError):
    """An outward call brought no usable result; ``failure`` says of which class."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class LeaseLost(ContentPipelineError):
    """Another worker owns the page now: this one must stop and write nothing more."""


class BudgetExhausted(ContentPipelineError):
    """Reserving the worst case of the next call would pass a cap; the call is not made."""


class PageBudgetExhausted(BudgetExhausted):
    """This page job's own cap is used up: waiting would not help."""


class CapTooSmall(BudgetExhausted):
    """The call could cost more than a whole day's cap: no new day would ever allow it."""


class UnknownPage(ContentPipelineError):
    """A person asked for a page that the ledger does not know."""
