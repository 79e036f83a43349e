"""Text as a hostile row or a tricked model may write it, and a judge of the HTML that results."""

from html.parser import HTMLParser
from urllib.parse import urlsplit

PAYLOADS = (
    "<script>alert(1)</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "</script><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "--><script>alert(1)</script><!--",
    "]]><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<object data=javascript:alert(1)></object><embed src=javascript:alert(1)>",
    "<math><mi//xlink:href='data:x,<script>alert(1)</script>'>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<form action=javascript:alert(1)><button>x</button></form>",
    "<a href=javascript:alert(1)>x</a>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<meta name='content-pipeline' content='page=a rev=99 hash=b'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<p style='background:url(javascript:alert(1))'>x</p>",
    "<!--[if gte IE 4]><script>alert(1)</script><![endif]-->",
    "<?php system('id'); ?><% alert(1) %>",
    "{{ config }}{% for x in y %}${7*7}#{7*7}",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](java&#x202E;script:alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:msgbox(1))",
    "[x](//evil.example/)",
    "[x](https://bank.example@evil.example/)",
    '[x](https://ok.example/ "a\\" onmouseover=\\"alert(1)")',
    "[x][r]\n\n[r]: javascript:alert(1)",
    "![x](https://evil.example/pixel.png)",
    "![x](javascript:alert(1))",
    '!["onerror=alert(1) x="](x)',
    "[![x](javascript:alert(1))](javascript:alert(1))",
    "<javascript:alert(1)>",
    '<https://evil.example/"onmouseover=alert(1)>',
    "```html\n</code></pre><script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "`<script>alert(1)</script>`",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\x00<script\x00>alert(1)</script>",
    "<script\u202e>alert(1)</script\u202e>",
    "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e",
    "\u2028alert(1)\u2029",
)

LOADING = frozenset({"src", "srcset", "srcdoc", "data", "action", "formaction", "background"})
ACTIVE = frozenset(
    {"iframe", "object", "embed", "form", "button", "input", "svg", "math", "img", "base", "frame"}
    | {"video", "audio", "source", "template", "noscript", "applet", "marquee", "isindex"}
)


class Judge(HTMLParser):
    """Reads HTML as a parser does, and collects all that could run, load or mislead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.comments: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self._open = "document"
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._open:
            self._open = "document"

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open, []).append(data)

    def text_of(self, tag: str) -> str:
        return "".join(self.texts.get(tag, []))

    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}

    def all_of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def dangers(self) -> list[str]:
        """What no page of ours may hold, the head's own elements left aside."""
        found = [f"comment {text!r}" for text in self.comments]
        for tag, attributes in self.tags:
            if tag in ACTIVE:
                found.append(f"<{tag}>")
            for name, value in attributes.items():
                if name.startswith("on") or name == "style" or name in LOADING:
                    found.append(f"<{tag} {name}>")
                if name == "href" and urlsplit(value or "").scheme not in ("", "http", "https"):
                    found.append(f"<{tag} href={value!r}>")
        return found
