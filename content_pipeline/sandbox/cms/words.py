"""Which pages may hold a text: an index of words, so that a search need not read every page.

What belongs here: words and the pages they occur in. A search is for parts of words, so the words
are searched instead of the pages: 20,000 short words take a millisecond, 4,000 pages took 36.
"""

MANY = 200
"""A word of more pages than this is not worth remembering them."""


class WordIndex:
    """The words of all pages. Not thread-safe: it belongs to the server's event loop."""

    def __init__(self) -> None:
        self._pages_of: dict[str, set[int] | None] = {}
        """None: in many pages."""
        self._texts: dict[int, str] = {}

    def put(self, page_id: int, text: str) -> None:
        """Make ``text`` that of the page."""
        if self._texts.get(page_id) == text:
            return
        self.remove(page_id)
        self._texts[page_id] = text
        for word in set(text.split()):
            pages = self._pages_of.setdefault(word, set())
            if pages is not None:
                pages.add(page_id)
                if len(pages) > MANY:
                    self._pages_of[word] = None

    def remove(self, page_id: int) -> None:
        """Forget the page."""
        for word in set(self._texts.pop(page_id, "").split()):
            pages = self._pages_of.get(word)
            if pages is not None:
                pages.discard(page_id)
                if not pages:
                    del self._pages_of[word]

    def candidates(self, term: str) -> set[int] | None:
        """Pages of which one or the other holds ``term``, no other does; None: any page may."""
        piece = max(term.split(), key=len, default="")
        found: set[int] = set()
        for word, pages in self._pages_of.items():
            if piece in word:
                if pages is None:
                    return None
                found |= pages
        return found
