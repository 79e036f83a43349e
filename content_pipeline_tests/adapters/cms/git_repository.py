"""A bare repository with a small site in it, and a person who works on it with their own clone.

What belongs here: the other side of the git adapter in tests. It is the judge as well: what it
holds is read by git itself, never through the adapter.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from content_pipeline.adapters.cms.git import GitCMS, GitSite
from content_pipeline.adapters.cms.git_clone import Author, GitClone
from content_pipeline.adapters.cms.git_command import Git, GitRemote
from content_pipeline.core.cms import RemotePage
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.documents import BASE_URL, make_document

BRANCH = "main"
AUTHOR = Author(name="Content pipeline", email="content-pipeline@localhost")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

HUGO_CONFIGURATION = """\
baseURL = "https://example.com/"
title = "Countries"
disableKinds = ["taxonomy", "term", "RSS"]
[security]
allowContent = [".*"]
"""

_PERSON = {
    **{f"GIT_{who}_NAME": "A person" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "person@example.com" for who in ("AUTHOR", "COMMITTER")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C",
}


def git(folder: Path, *arguments: str, stdin: bytes = b"", check: bool = True) -> bytes:
    """What a git command in ``folder`` says."""
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        input=stdin,
        capture_output=True,
        env={"PATH": os.environ["PATH"], **_PERSON},  # noqa: TID251 - git is somewhere on it
        check=False,
    )
    assert not check or done.returncode == 0, f"git {arguments}: {done.stderr.decode()}"
    return done.stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The bare repository, and the person's clone beside it."""

    bare: Path

    @property
    def _clone(self) -> Path:
        return self.bare.parent / "person"

    @classmethod
    def new(cls, folder: Path, files: Mapping[str, str] | None = None) -> "Repository":
        """A repository in ``folder`` with ``files``, a Hugo configuration by default."""
        folder.mkdir(parents=True, exist_ok=True)
        repository = cls(bare=folder / "site.git")
        git(folder, "init", "--quiet", "--bare", f"--initial-branch={BRANCH}", "site.git")
        seed = {"hugo.toml": HUGO_CONFIGURATION} if files is None else files
        stream = f"commit refs/heads/{BRANCH}\ncommitter A person <person@example.com> 1 +0000\n"
        stream += "data 4\nSeed\n"
        for name, text in seed.items():
            stream += f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}\n"
        git(repository.bare, "fast-import", "--quiet", stdin=stream.encode())
        return repository

    def head(self) -> str:
        return git(self.bare, "rev-parse", f"refs/heads/{BRANCH}").decode().strip()

    def history(self) -> list[str]:
        """Subjects of all commits, oldest first."""
        log = git(self.bare, "log", "--reverse", "--format=%s", BRANCH).decode()
        return log.splitlines()

    def names(self) -> list[str]:
        listed = git(self.bare, "ls-tree", "-r", "-z", "--name-only", BRANCH).decode()
        return [name for name in listed.split("\0") if name.startswith("content/")]

    def read(self, name: str) -> bytes | None:
        text = git(self.bare, "cat-file", "blob", f"{BRANCH}:{name}", check=False)
        return text if name in self.names() else None

    def commit(self, files: Mapping[str, bytes | None]) -> str:
        """A person writes files, deletes those that are None, and pushes."""
        clone = self._clone
        if not clone.exists():
            git(self.bare.parent, "clone", "--quiet", "--branch", BRANCH, "site.git", clone.name)
        git(clone, "pull", "--quiet", "--ff-only", "origin", BRANCH)
        for name, text in files.items():
            file = clone / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(text)
        git(clone, "add", "--all")
        git(clone, "commit", "--quiet", "--allow-empty", "--message", "By a person")
        git(clone, "push", "--quiet", "origin", f"HEAD:{BRANCH}")
        return git(clone, "rev-parse", "HEAD").decode().strip()

    def hook(self, name: str, script: str) -> None:
        """Let the repository run ``script`` as its hook ``name``."""
        file = self.bare / "hooks" / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)


def clone_of(
    folder: Path, remote: GitRemote, *, deadline_s: float = 60.0, path: str | None = None
) -> GitClone:
    """Our private copy in ``folder``; ``path``: where programs are, first of all."""
    everywhere = os.environ["PATH"]  # noqa: TID251 - git is somewhere on it
    variables = {"PATH": everywhere if path is None else f"{path}:{everywhere}"}
    return GitClone(
        git=Git(folder=folder, remote=remote, variables=variables, deadline_s=deadline_s),
        branch=BRANCH,
        author=AUTHOR,
    )


def git_before(folder: Path, command: str, script: str) -> str:
    """A place for the PATH, where git runs ``script`` before its ``command``."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    real = shutil.which("git")
    text = f'#!/bin/sh\ncase "$*" in *{command}*)\n{script}\n;; esac\nexec {real} "$@"\n'
    program.write_text(text)
    program.chmod(0o755)
    return str(program.parent)


def cms_of(clone: GitClone, *, deployed: str | None = None, now: datetime = NOW) -> GitCMS:
    """The adapter on a clone."""
    return GitCMS(clone, GitSite(base_url=BASE_URL, deployed=deployed), clock=lambda: now)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitBench:
    """The adapter on a repository, and the hands of a person who pushes to it as well."""

    repository: Repository
    cms: GitCMS
    base_url: str = BASE_URL

    def file(self, path: str) -> str:
        return f"content/{path.strip('/').replace('/', '+')}.html"

    def _text(self, path: str) -> str:
        text = self.repository.read(self.file(path))
        assert text is not None
        return text.decode()

    def edit(self, path: str) -> None:
        text = self._text(path)
        assert "Austria lies" in text
        edited = text.replace("Austria lies", "Austria surely lies")
        self.repository.commit({self.file(path): edited.encode()})

    def occupy(self, path: str) -> None:
        text = b"+++\ntitle = 'Mine'\n+++\nHands off.\n"
        self.repository.commit({f"content{path}index.md": text})

    def delete(self, path: str) -> None:
        self.repository.commit({self.file(path): None})

    def trash(self, path: str) -> None:
        raise AssertionError(f"{path}: a branch has no trash")

    def hide(self, path: str) -> None:
        text = self._text(path).replace("---\n", "---\ndraft: true\n", 1)
        self.repository.commit({self.file(path): text.encode()})

    def rename(self, path: str, to: str) -> None:
        text = self._text(path).replace(f'url: "{path}"', f'url: "{to}"')
        self.repository.commit({self.file(path): None, self.file(to): text.encode()})

    def visible(self, path: str) -> str | None:
        for name in (self.file(path), f"content{path}index.md"):
            text = self.repository.read(name)
            if text is not None and b"\ndraft: true" not in text:
                return text.decode()
        return None


def publish(cms: GitCMS, path: str = "/austria/", *, revision: int = 1) -> RemotePage:
    return cms.publish(make_document(path, revision=revision), replacing=None)


def refused(cms: GitCMS, path: str = "/austria/") -> Failure:
    """The failure of publishing a new page."""
    with pytest.raises(CallFailed) as failed:
        publish(cms, path)
    return failed.value.failure


def lost(cms: GitCMS) -> Failure:
    """Why a look-up says nothing."""
    found = cms.look_up("x", "/austria/", None)
    assert found.verdict is Verdict.UNKNOWN
    assert found.failure is not None
    return found.failure
