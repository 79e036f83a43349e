"""What a preflight of a site in a repository looks at.

What belongs here: git itself, the branch, the right to push, the site's own settings where they
decide about our pages, and how far the site is behind its branch. Nothing is changed.
"""

import re

from content_pipeline.adapters.cms.git_clone import GitClone, LockedClone
from content_pipeline.adapters.cms.git_deployed import deployed_commit
from content_pipeline.core.cms import CMSCheck
from content_pipeline.core.errors import CallFailed

OLDEST_GIT = (2, 31)
"""The first that takes settings from GIT_CONFIG_COUNT."""

_CONFIGURATION = ("hugo.*", "config.*", "config/**")


def check_site(clone: GitClone, *, content_folder: str, deployed: str | None) -> CMSCheck:
    """Who we are for the repository, and what keeps us from publishing to it."""
    problems: list[str] = []
    notes: list[str] = []
    version = ""
    try:
        version = _git_version(clone, problems)
        with clone.locked() as locked:
            head = locked.fetch()
            _check_push(locked, head, problems)
        _look_at_site(clone, head, content_folder, notes)
        if deployed is None:
            notes.append(
                "cms.deployed_url is not set: a page counts as published when it is on the branch, "
                "whether or not the site was built"
            )
        else:
            _look_at_deployment(clone, head, deployed, notes)
    except CallFailed as failed:
        problems.append(failed.failure.message)
    identity = f"{clone.git.remote.url} branch {clone.branch} ({version or 'no git'})"
    return CMSCheck(identity=identity, problems=tuple(problems), notes=tuple(notes))


def _git_version(clone: GitClone, problems: list[str]) -> str:
    words = clone.git.run("version").output.decode().strip()
    found = re.search(r"(\d+)\.(\d+)", words)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        needed = ".".join(map(str, OLDEST_GIT))
        problems.append(f"{words or 'git'} is too old; install {needed} or newer")
    return words


def _check_push(locked: LockedClone, head: str, problems: list[str]) -> None:
    refusal = locked.push(head, over=head, dry_run=True)
    if refusal is not None:
        problems.append(f"the branch cannot be pushed to: {refusal[1]}")


def _look_at_site(clone: GitClone, head: str, content_folder: str, notes: list[str]) -> None:
    if not clone.listing(head, content_folder):
        notes.append(f"the branch has no files in {content_folder}/ yet; is it the right folder?")
    if not clone.mentions(head, "allowContent", _CONFIGURATION):
        notes.append(
            "newer releases of Hugo (0.166, for one) build no site with HTML content unless its "
            "configuration says [security] allowContent = ['.*']"
        )
    if clone.mentions(head, "enableEmoji", _CONFIGURATION):
        notes.append(
            "the site sets enableEmoji: older releases of Hugo (0.111) then write emoji for words "
            "like :heart: in our texts and links too"
        )


def _look_at_deployment(clone: GitClone, head: str, deployed: str, notes: list[str]) -> None:
    shown = deployed_commit(deployed)
    if shown == head:
        return
    if not clone.knows(shown):
        notes.append(f"the site shows commit {shown[:12]}, which was never on the branch")
        return
    behind = clone.count(shown, head)
    notes.append(
        f"the site shows commit {shown[:12]}, {behind} behind the branch: a build is under way or "
        "failed; its log says which file is in the way"
    )
