"""The memory files of one workspace: `MEMORY.md`, `memory.md`, `memory/**/*.md` and extra paths (O66).

Which files count, how a path of a caller becomes a file, and the append-only daily note. Everything here blocks on the
file system; async callers go through a thread. What the files say is untrusted data.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memagent.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

BASE_NAMES = ("MEMORY.md", "memory.md")
FOLDER = "memory"
SUFFIX = ".md"
MAX_BASE_CHARS = 20_000
"""What of `MEMORY.md` stands in a prompt (O79); the file itself is never cut."""
MAX_FILE_BYTES = 16 * 2**20
"""A larger Markdown file is no note: it is left out of the index and reported."""

_DAILY = re.compile(r"memory/(\d{4})-(\d{2})-(\d{2})\.md")


@dataclass(frozen=True, slots=True)
class NoteFile:
    """One memory file. `path` is relative to the workspace with `/`; absolute for an extra path outside of it."""

    path: str
    real: Path


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder with memory files. `extra` names further files and folders, relative to `root` or absolute (O66)."""

    root: Path
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # The folder itself may be reached through a link; nothing inside it may be one.
        object.__setattr__(self, "root", self.root.resolve())

    def files(self) -> tuple[NoteFile, ...]:
        """Every memory file, sorted by path: no symlinks, and one real file once however many paths lead to it.

        Raises `NotFound` for a workspace that is not there.
        """
        if not self.root.is_dir():
            raise NotFound("the workspace folder does not exist")
        found: dict[tuple[int, int], NoteFile] = {}
        for path in self._candidates():
            try:
                status = os.lstat(path)
            except OSError:  # gone, or out of reach, since it was listed
                continue
            if stat.S_ISREG(status.st_mode):
                found.setdefault((status.st_dev, status.st_ino), NoteFile(self.label(path), path))
        return tuple(sorted(found.values(), key=lambda file: file.path))

    def _candidates(self) -> Iterator[Path]:
        for place in self._places():
            if not _linked(place, self._above(place)):
                yield from _markdown(place)

    def _places(self) -> tuple[Path, ...]:
        names = (*BASE_NAMES, FOLDER, *self.extra)
        return tuple(Path(os.path.normpath(self.root / name)) for name in names)

    def _above(self, place: Path) -> Path:
        """The folder below which no part of the way may be a link; above it the ways are the administrator's."""
        return self.root if place.is_relative_to(self.root) else place.parent

    def folders_outside(self) -> tuple[Path, ...]:
        """Folders to watch besides the root: those of extra paths that lie outside and exist."""
        outside = [place for place in self._places() if not place.is_relative_to(self.root)]
        folders = [place if place.is_dir() else place.parent for place in outside]
        return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))

    def concerns(self, path: str) -> bool:
        """Whether a change there can change what the memory files are: in a place of theirs, or above it."""
        changed = Path(path)
        return any(changed.is_relative_to(place) or place.is_relative_to(changed) for place in self._places())

    def label(self, real: Path) -> str:
        """How `real` is cited."""
        return (real.relative_to(self.root) if real.is_relative_to(self.root) else real).as_posix()

    def locate(self, path: str) -> Path:
        """The real file that `path` means; it need not exist.

        Raises `BadRequest` for anything that is not a memory path: outside the workspace, reached through a link or
        `..`, without `.md` (O77).
        """
        if not path or "\0" in path or "\\" in path or ".." in path.split("/"):
            raise BadRequest("the path is not a memory path: name a file as memory_search cites it")
        real = Path(os.path.normpath(self.root / path))
        place = next((place for place in self._places() if real.is_relative_to(place)), None)
        if place is None or real.suffix != SUFFIX or _linked(real, self._above(place)):
            raise BadRequest(
                "the path is not a memory path: only MEMORY.md, memory/**/*.md and the extra paths can be read"
            )
        return real

    def read(self, path: str) -> str:
        """The text of one memory file; bytes that are not UTF-8 become U+FFFD. Raises `BadRequest`, `NotFound`."""
        return decoded(read_bytes(self.locate(path)))

    def lines(self, path: str, *, first: int = 1, count: int | None = None) -> str:
        """`count` lines from the 1-based line `first` on; empty for a file that is not there (O77)."""
        if first < 1 or (count is not None and count < 0):
            raise BadRequest("a memory file is read from line 1 on, and not a negative number of lines")
        try:
            text = self.read(path)
        except NotFound:
            return ""
        if first == 1 and count is None:
            return text
        last = None if count is None else first - 1 + count
        return "\n".join(split_lines(text)[first - 1 : last])

    def base_text(self, *, max_chars: int = MAX_BASE_CHARS) -> str:
        """`MEMORY.md` for a prompt, cut at `max_chars` with a word about it (O79); the file stays as it is."""
        for name in BASE_NAMES:
            try:
                text = self.read(name)
            except (NotFound, BadRequest):
                continue
            return (
                text
                if len(text) <= max_chars
                else f"{text[:max_chars]}\n[{name} goes on; read it with memory_get]"
            )
        return ""

    def recent_notes(self, today: date, yesterday: date) -> tuple[tuple[str, str], ...]:
        """Path and text of yesterday's and today's notes, for a session that the user opened by hand (O79)."""
        paths = (daily_path(day) for day in (yesterday, today))
        return tuple((path, text) for path in paths if (text := self.lines(path)))

    def append_note(self, day: date, text: str) -> str:
        """Append `text` to the note of `day` and return its path (O63, O65).

        `day` is the date where the user is: flush and reset both use it, so one evening is one file.
        """
        path = daily_path(day)
        self.append(path, text)
        return path

    def append(self, path: str, text: str) -> None:
        """Append `text` to a daily note; every other memory file is read-only here (O63).

        Appends are whole: the text is on disk before this returns, and what stands in the file is never rewritten.
        Raises `BadRequest` for an empty text, another path, or a way there that is a link.
        """
        body = text.strip()
        if not body or day_of(path) is None:
            raise BadRequest(
                "a note has a text and goes to memory/YYYY-MM-DD.md; the other memory files are read-only"
            )
        real = self.locate(path)
        real.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(real, flags, 0o600), "ab") as file:
            gap = "\n" if os.fstat(file.fileno()).st_size else ""
            # A note without a final line feed, or one that a crash cut short, ends before ours begins.
            end = (
                ""
                if not gap or os.pread(file.fileno(), 1, os.fstat(file.fileno()).st_size - 1) == b"\n"
                else "\n"
            )
            file.write(f"{end}{gap}{body}\n".encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())


def daily_path(day: date) -> str:
    """The path of a day's note."""
    return f"{FOLDER}/{day.isoformat()}{SUFFIX}"


def day_of(path: str) -> date | None:
    """The day of a daily note; None for every other file, which never ages (O75)."""
    from datetime import date as day  # noqa: PLC0415  the annotation above must not cost the name at run time

    if match := _DAILY.fullmatch(path):
        try:
            return day(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            return None
    return None


def read_bytes(real: Path) -> bytes:
    """The bytes of a regular file; raises `NotFound` when there is none, `BadRequest` when it is a link or too large."""
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound("the memory file does not exist") from None
    except OSError as error:
        raise BadRequest(f"the memory file cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadRequest("the memory path is not a file")
        if status.st_size > MAX_FILE_BYTES:
            raise BadRequest(f"the memory file is larger than {MAX_FILE_BYTES} bytes")
        return file.read()


def decoded(data: bytes) -> str:
    """Bytes of a note as text, without a byte order mark."""
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def split_lines(text: str) -> Sequence[str]:
    """Lines as an editor numbers them: only a line feed ends one, and a final one opens no further line."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _markdown(place: Path) -> Iterator[Path]:
    if place.is_file() and place.suffix == SUFFIX:
        yield place
    for folder, folders, names in os.walk(place, followlinks=False):
        folders.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(SUFFIX))


def _linked(place: Path, above: Path) -> bool:
    """Whether a part of the way from `above` to `place` is a symlink."""
    ways = (place, *place.parents)
    return any(way.is_symlink() for way in ways if way.is_relative_to(above) and way != above)
