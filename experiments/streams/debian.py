"""Debian's packages and their index, fetched without root: apt-get with folders of its own, and dpkg-deb.

Which servers, which keys and which release is what the system's own apt is set up for; apt checks all signatures.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from experiments.streams.stream import MissingStream

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Index", "Package", "index", "package"]

SECONDS: Final = 600
"""As long as one command may take; the index of a release has about 10 MB."""
FIELDS: Final = ("FILENAME", "ORIGIN", "CODENAME", "VERSION", "COMPONENT", "ARCHITECTURE")


class Package(NamedTuple):
    """One package, unpacked and not installed.

    Attributes:
        name: as apt knows it.
        version: of the package.
        folder: what would be the root of the file system.
    """

    name: str
    version: str
    folder: Path


class Index(NamedTuple):
    """The list of all packages of a release.

    Attributes:
        path: of the file, one stanza for each package.
        source: in words, such as "Debian bookworm 12.15, main, amd64".
    """

    path: Path
    source: str


def package(name: str, cache: Path) -> Package:
    """Return a package; the first call fetches and unpacks it, later ones use what lies in the cache.

    Raises:
        MissingStream: there is no apt here, no network, or no such package in this release.
    """
    root = cache / "debian"
    unpacked = root / "packages" / name
    if not unpacked.exists():
        with _locked(root):
            if not unpacked.exists():  # another process may have been faster
                _updated(root)
                _fetch(root, name, unpacked)
    return Package(name, (unpacked / "version").read_text(), unpacked / "files")


def index(cache: Path) -> Index:
    """Return the largest index of the system's own release; the first call fetches it.

    Raises:
        MissingStream: there is no apt here, no network, or the system is no Debian and none of its kin.
    """
    root = cache / "debian"
    with _locked(root):
        return _updated(root)


def _fetch(root: Path, name: str, unpacked: Path) -> None:
    with tempfile.TemporaryDirectory(dir=root, prefix="unfinished-") as temporary:
        folder = Path(temporary)
        _apt(root, "download", name, folder=folder)
        archive = next(folder.glob("*.deb"))
        made = folder / "made"
        made.mkdir()
        _run("dpkg-deb", "--extract", str(archive), str(made / "files"))
        (made / "version").write_text(_run("dpkg-deb", "--field", str(archive), "Version").strip())
        unpacked.parent.mkdir(exist_ok=True)
        made.rename(unpacked)


def _updated(root: Path) -> Index:
    """Return the index, and fetch it if it is not there; apt needs it to find packages."""
    found = _found(root)
    if found is None:
        _apt(root, "update")
        found = _found(root)
    if found is None:
        raise MissingStream("apt-get fetched no index of this system's packages. Is there a network, is it Debian?")
    return found


def _found(root: Path) -> Index | None:
    try:
        system = platform.freedesktop_os_release()["ID"]
    except OSError:
        raise MissingStream(
            "Debian's packages need a Debian or its kin; this system does not say what it is."
        ) from None
    rows = _apt(root, "indextargets", "--format", "\t".join(f"$({field})" for field in FIELDS), "Created-By: Packages")
    found = []
    for row in rows.splitlines():
        path, origin, codename, version, component, architecture = row.split("\t")
        if origin.lower() == system and Path(path).exists():  # other vendors' sources may stand beside it
            number = "" if version.startswith("$") else f" {version}"  # releases in the making have none
            source = f"{origin} {codename}{number}, {component}, {architecture}"
            found.append((Path(path).stat().st_size, Index(Path(path), source)))
    return max(found)[1] if found else None


def _apt(root: Path, *arguments: str, folder: Path | None = None) -> str:
    """Run apt-get with lists and archives below `root`; all else is as the system has it."""
    state, cache = root / "apt" / "state", root / "apt" / "cache"
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (cache / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    options = {
        "Dir::State": state.resolve(),
        "Dir::State::lists": "lists",
        "Dir::Cache": cache.resolve(),
        "APT::Sandbox::User": "root",  # root would else give its rights away, and could not write into our folders
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "false",  # the index is read as a text
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        "Acquire::http::Timeout": 20,
        "Acquire::https::Timeout": 20,
    }
    words = [word for name, value in options.items() for word in ("--option", f"{name}={value}")]
    return _run("apt-get", "--quiet", *words, *arguments, folder=folder)


def _run(program: str, *arguments: str, folder: Path | None = None) -> str:
    """Return what a program says.

    Raises:
        MissingStream: it is not there, fails or takes too long.
    """
    path = shutil.which(program)
    if path is None:
        raise MissingStream(f"Debian's packages need {program}, which is not here. Run this on Debian or its kin.")
    try:
        done = subprocess.run(  # noqa: S603 - our own words and the names of packages in this folder
            [path, *arguments],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise MissingStream(f"{program} took more than {SECONDS} seconds. Is there a network?") from None
    except subprocess.CalledProcessError as error:
        reason = _reason(error.stderr)
        raise MissingStream(
            f"{program} failed: {reason}. Is there a network, and has this release the package?"
        ) from None
    return done.stdout


def _reason(said: str) -> str:
    """Return the first error that a program tells, without addresses: the line may become part of the results."""
    lines = [line for line in said.splitlines() if line.startswith(("E:", "dpkg-deb: error:"))] or said.splitlines()
    return re.sub(r"\S+://\S+", "a source", lines[0].partition(": ")[2]).rstrip(".") if lines else "it does not say why"


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Let one process at a time use apt; it would fail in the others."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
