"""What a server does after a push: build the newest commit with Hugo, and put it in place.

What belongs here: a deployment as simple as can be, run as the repository's hook. A build that
fails leaves the site as it is.
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

BRANCH = "main"
DEPLOYED = "deployed.txt"


def deploy(bare: Path, hugo: Path, public: Path) -> None:
    """Build ``bare``'s branch into ``public``; one build at a time, the newest commit wins."""
    work = public.parent / "build"
    with (public.parent / "deploy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(work, ignore_errors=True)
        (work / "source").mkdir(parents=True)
        git = ["git", f"--git-dir={bare}"]
        commit = subprocess.check_output([*git, "rev-parse", BRANCH], text=True).strip()
        archive = subprocess.check_output([*git, "archive", commit])
        subprocess.run(["tar", "-x", "-C", str(work / "source")], input=archive, check=True)
        built = subprocess.run(
            [str(hugo), "--source", str(work / "source"), "--destination", str(work / "public")],
            capture_output=True,
            text=True,
            check=False,
        )
        (public.parent / "build.log").write_text(built.stdout + built.stderr)
        if built.returncode != 0:
            print(f"the build of {commit} failed")  # noqa: T201 - shown to whoever pushed
            return
        (work / "public" / DEPLOYED).write_text(f"{commit}\n")
        if public.exists():
            public.rename(work / "old")
        (work / "public").rename(public)


if __name__ == "__main__":
    deploy(*map(Path, sys.argv[1:]))
