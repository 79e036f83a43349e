"""Why an answer holds no usable text, and the checks on a text that are the same for every API.

What belongs here: what the readers of all APIs share. The error never leaves a reader.
"""

from content_pipeline.core.failures import FailureClass


class Unusable(Exception):
    """The answer holds nothing usable."""

    def __init__(self, failure_class: FailureClass, words: str) -> None:
        super().__init__(words)
        self.failure_class = failure_class
        self.words = words


def filtered() -> Unusable:
    """The provider's filter ended the answer."""
    return Unusable(
        FailureClass.POLICY, "the content filter stopped the answer; a person must decide"
    )


def declined() -> Unusable:
    """The model refuses in the field made for it."""
    return Unusable(FailureClass.POLICY, "the model refuses the subject; a person must decide")


def cut() -> Unusable:
    """The answer ended at the limit that was asked for."""
    return Unusable(
        FailureClass.BAD_OUTPUT,
        "the answer was cut at the token limit; raise max_output_tokens or ask for less",
    )


def called_a_tool() -> Unusable:
    """The model asks for something that was never offered."""
    return Unusable(FailureClass.BAD_OUTPUT, "the model called a tool, none was offered")


def checked_text(content: object, *, reasoned: bool) -> str:
    """``content`` as the model's text. Raises Unusable; ``reasoned``: it did think."""
    if not isinstance(content, str) or not content.strip():
        what = "only reasoning and no text" if reasoned else "no text"
        raise Unusable(FailureClass.BAD_OUTPUT, f"the answer holds {what}")
    try:
        content.encode()
    except UnicodeEncodeError:
        raise Unusable(FailureClass.BAD_OUTPUT, "the text is not valid Unicode") from None
    return content
