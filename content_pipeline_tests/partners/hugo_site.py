"""A Hugo site that is built by its repository's own hook, after every push.

What belongs here: the site's few layouts, the hook, and what a visitor gets.
"""

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.adapters.cms.git import GitCMS
from content_pipeline.adapters.cms.git_command import GitRemote
from content_pipeline_tests.adapters.cms.git_repository import (
    HUGO_CONFIGURATION,
    GitBench,
    Repository,
    clone_of,
    cms_of,
)
from content_pipeline_tests.partners import hugo_deploy
from content_pipeline_tests.partners.presence import Partner, program_of

SINGLE = """\
<!doctype html>
<html><head>
<title>{{ .Title }}</title>
<meta name="description" content="{{ .Description }}">
<meta name="cp-key" content="{{ .Params.cp_key }}">
<meta name="cp-rev" content="{{ .Params.cp_rev }}">
<link rel="canonical" href="{{ .Permalink }}">
{{ with .Params.json_ld }}<script type="application/ld+json">{{ . | safeJS }}</script>{{ end }}
</head><body><article>
{{ .Content }}</article></body></html>
"""
LIST = "<html><body>{{ range .Pages }}<a href='{{ .RelPermalink }}'></a>{{ end }}</body></html>"

_ARTICLE = re.compile(r"<article>\n(.*)\n</article>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HugoSite:
    """The site, and where it is built to."""

    repository: Repository
    public: Path

    @classmethod
    def new(cls, folder: Path, *, configuration: str = HUGO_CONFIGURATION) -> "HugoSite":
        """An empty site in ``folder`` that was built once. Skips or fails a test without Hugo."""
        files = {
            "hugo.toml": configuration,
            "layouts/_default/single.html": SINGLE,
            "layouts/_default/list.html": LIST,
        }
        site = cls(repository=Repository.new(folder, files), public=folder / "public")
        site.resume_building()
        hugo_deploy.deploy(site.repository.bare, program_of(Partner.HUGO), site.public)
        assert site.deployed() == site.repository.head(), site.log()
        return site

    def resume_building(self) -> None:
        """Build after every push from now on."""
        command = [sys.executable, hugo_deploy.__file__, str(self.repository.bare)]
        command += [str(program_of(Partner.HUGO)), str(self.public)]
        self.repository.hook("post-receive", f"exec {shlex.join(command)}")

    def stop_building(self) -> None:
        """Take pushes, and build nothing."""
        (self.repository.bare / "hooks" / "post-receive").unlink()

    def build(self) -> None:
        """Build what is on the branch now."""
        hugo_deploy.deploy(self.repository.bare, program_of(Partner.HUGO), self.public)

    @property
    def deployed_file(self) -> Path:
        return self.public / hugo_deploy.DEPLOYED

    def deployed(self) -> str:
        return self.deployed_file.read_text().strip()

    def log(self) -> str:
        return (self.public.parent / "build.log").read_text()

    def visible(self, path: str) -> str | None:
        """What a visitor gets for the path."""
        file = self.public / path.strip("/") / "index.html"
        return file.read_text() if file.exists() else None

    def article(self, path: str) -> str:
        """The page's body as a visitor gets it."""
        page = self.visible(path)
        assert page is not None, self.log()
        found = _ARTICLE.search(page)
        assert found is not None, page
        return found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class HugoBench(GitBench):
    """A bench whose visitors see what Hugo built."""

    site: HugoSite

    def visible(self, path: str) -> str | None:
        return self.site.visible(path)


def cms_of_site(site: HugoSite, folder: Path) -> GitCMS:
    """The adapter on the site, with a copy of its own in ``folder``."""
    clone = clone_of(folder, GitRemote(url=str(site.repository.bare)))
    return cms_of(clone, deployed=str(site.deployed_file))


def bench_of(site: HugoSite, folder: Path) -> HugoBench:
    return HugoBench(repository=site.repository, cms=cms_of_site(site, folder), site=site)
