"""Passages in LanceDB: embedded, persistent, one folder, no server (extra `lancedb`).

One table per embedder, and one that says which generation of whom is live. Every write is one commit of the table, so a
process that dies leaves the last whole state. Searches scan exactly, without an approximate index: an owner's rows are
thousands, not millions, and both stores must rank alike.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from memagent.errors import StoreFault, StoreUnavailable
from memagent.sessions.vectors import Frequencies, Generation, Kind, Passage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from memagent.llm import Vector

SCHEMA = 1
"""Part of every table name: another layout lives beside this one and is built anew."""
TIDY_AFTER_WRITES = 64
"""Each commit leaves a version behind; now and then they are folded together."""
KEEP_VERSIONS = timedelta(hours=1)
"""Younger versions stay for readers in other processes that still look at them."""
NO_VERSIONS = timedelta(milliseconds=1)
"""Erased is erased: no version that still holds the rows stays. A reader in another process has to look again."""
MAX_TABLES = 10_000
"""One per embedder that was ever used."""
REGISTER = f"generations_{SCHEMA}"


class LanceVectors:
    """A `VectorStore` in a folder. Several processes may share it: Lance retries a commit that lost a race."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connection: Any = None
        self._opened: dict[str, Any] = {}
        self._writes = 0
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        for table in self._opened.values():
            table.close()
        self._opened.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- generations ---------------------------------------------------------------------------------------------------

    async def live(self, owner: str, kind: Kind) -> Generation | None:
        rows = await self._registered(f"owner = '{_hashed(owner)}' AND live = '{kind}'")
        return Generation.from_json(rows[0]["made"]) if rows else None

    async def begin(self, generation: Generation) -> None:
        await self._table(generation)
        await self._register(generation, live="", when=None)

    async def make_live(self, generation: Generation) -> bool:
        return await self._register(
            generation, live=str(generation.kind), when="target.serial < source.serial"
        )

    async def sweep(self, owner: str, kind: Kind) -> int:
        live = await self.live(owner, kind)
        if live is None:
            return 0
        rows = await self._registered(f"owner = '{_hashed(owner)}' AND live = ''")
        made = [each for row in rows if (each := Generation.from_json(row["made"])).kind == kind]
        kept = {live.id, *(each.id for each in made if each.serial > live.serial)}
        mine = f"owner = '{_hashed(owner)}' AND kind = '{kind}'"
        removed = await self._remove(f"{mine} AND generation NOT IN ({_quoted(sorted(kept))})")
        gone = [f"{_hashed(owner)}/{each.id}" for each in made if each.id not in kept]
        if gone:
            with _faults():
                await (await self._named(REGISTER, 0)).delete(f"id IN ({_quoted(gone)})")
        return removed

    async def erase(self, owner: str) -> int:
        mine = f"owner = '{_hashed(owner)}'"
        removed = await self._remove(mine)
        with _faults():
            register = await self._named(REGISTER, 0)
            await register.delete(mine)
            await register.optimize(cleanup_older_than=NO_VERSIONS)
        return removed

    async def _remove(self, where: str) -> int:
        """Remove rows of every embedder, those of a generation that nobody remembers too."""
        removed = 0
        with _faults():
            await self._named(REGISTER, 0)
            for name in await self._tables():
                if name.startswith(f"passages_{SCHEMA}_"):
                    table = await self._named(name, 0)
                    count = int(await table.count_rows(where))
                    if count:
                        await table.delete(where)
                        await table.optimize(cleanup_older_than=NO_VERSIONS)
                    removed += count
        return removed

    async def _registered(self, where: str) -> list[dict[str, Any]]:
        with _faults():
            table = await self._named(REGISTER, 0)
            rows: list[dict[str, Any]] = await table.query().where(where).select(["made"]).to_list()
            return rows

    async def _register(self, generation: Generation, *, live: str, when: str | None) -> bool:
        row = {
            "id": f"{_hashed(generation.owner)}/{live or generation.id}",
            "owner": _hashed(generation.owner),
            "live": live,
            "serial": generation.serial,
            "made": generation.to_json(),
        }
        with _faults():
            table = await self._named(REGISTER, 0)
            merge = table.merge_insert("id").when_not_matched_insert_all()
            if when:
                merge = merge.when_matched_update_all(where=when)
            done = await merge.execute([row])
            return bool(done.num_inserted_rows or done.num_updated_rows)

    # -- writing -------------------------------------------------------------------------------------------------------

    async def replace(self, generation: Generation, path: str, passages: Sequence[Passage]) -> None:
        gone = f"{_within(generation)} AND place = '{_hashed(path)}'"
        with _faults():
            table = await self._table(generation)
            if not passages:
                await table.delete(gone)
            else:
                merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                await merge.when_not_matched_by_source_delete(gone).execute(
                    _rows(generation, passages), on_bad_vectors="null"
                )
        await self._tidy(table)

    async def add(self, generation: Generation, passages: Sequence[Passage]) -> None:
        if not passages:
            return
        with _faults():
            table = await self._table(generation)
            merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            await merge.execute(_rows(generation, passages), on_bad_vectors="null")
        await self._tidy(table)

    async def _tidy(self, table: Any) -> None:
        self._writes += 1
        if self._writes % TIDY_AFTER_WRITES == 0:
            with _faults():
                await table.optimize(cleanup_older_than=KEEP_VERSIONS)

    # -- reading -------------------------------------------------------------------------------------------------------

    async def versions(self, generation: Generation) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for row in await self._select(generation, "", ["path", "version"]):
            found.setdefault(row["path"], set()).add(row["version"])
        return {path: frozenset(versions) for path, versions in found.items()}

    async def vectors(self, generation: Generation, digests: Collection[str]) -> Mapping[str, Vector]:
        if not digests or not generation.dimensions:
            return {}
        rows = await self._select(generation, f"digest IN ({_quoted(sorted(digests))})", ["digest", "vector"])
        return {
            row["digest"]: np.asarray(row["vector"], np.float32) for row in rows if row["vector"] is not None
        }

    async def nearest(
        self, generation: Generation, vector: Vector, limit: int
    ) -> Sequence[tuple[str, float]]:
        if not generation.dimensions or limit < 1:
            return ()
        with _faults():
            table = await self._table(generation)
            query = table.vector_search(np.asarray(vector, np.float32)).distance_type("cosine")
            query = query.where(_within(generation)).limit(limit).select(["row", "_distance"])
            return [(row["row"], 1.0 - float(row["_distance"])) for row in await query.to_list()]

    async def frequencies(self, generation: Generation, terms: Sequence[str]) -> Frequencies:
        with _faults():
            table = await self._table(generation)
            lengths = await table.query().where(_within(generation)).select(["length"]).to_list()
            counts = {
                term: int(
                    await table.count_rows(f"{_within(generation)} AND array_has(terms, {_quoted([term])})")
                )
                for term in terms
            }
        return Frequencies(len(lengths), sum(row["length"] for row in lengths), counts)

    async def containing(
        self, generation: Generation, terms: Sequence[str], limit: int
    ) -> Mapping[str, tuple[str, ...]]:
        if not terms or limit < 1:
            return {}
        where = f"array_has_any(terms, [{_quoted(terms)}])"
        rows = await self._select(generation, where, ["row", "terms"], limit=limit)
        return {row["row"]: tuple(row["terms"]) for row in rows}

    async def rows(self, generation: Generation, path: str) -> Sequence[Passage]:
        found = await self._select(generation, f"place = '{_hashed(path)}'", _TEXT_COLUMNS)
        return sorted(map(_passage, found), key=lambda passage: (passage.first, passage.piece, passage.last))

    async def fetch(self, generation: Generation, ids: Sequence[str]) -> Mapping[str, Passage]:
        if not ids:
            return {}
        columns = [*_TEXT_COLUMNS, "row", *(["vector"] if generation.dimensions else [])]
        rows = await self._select(generation, f"row IN ({_quoted(ids)})", columns)
        return {row["row"]: _passage(row) for row in rows}

    async def _select(
        self, generation: Generation, where: str, columns: list[str], *, limit: int | None = None
    ) -> list[dict[str, Any]]:
        condition = _within(generation) + (f" AND {where}" if where else "")
        with _faults():
            query = (await self._table(generation)).query().where(condition).select(columns)
            rows: list[dict[str, Any]] = await (query.limit(limit) if limit else query).to_list()
            return rows

    # -- tables --------------------------------------------------------------------------------------------------------

    async def _table(self, generation: Generation) -> Any:
        space = _hashed(json.dumps([generation.embedder, generation.dimensions]))[:16]
        return await self._named(f"passages_{SCHEMA}_{space}", generation.dimensions)

    async def _named(self, name: str, dimensions: int) -> Any:
        async with self._opening:
            if self._connection is None:
                self._connection = await _connect(self._folder)
            if name not in self._opened:
                self._opened[name] = await self._made(name, dimensions)
        table = self._opened[name]
        await table.checkout_latest()
        return table

    async def _tables(self) -> list[str]:
        return list((await self._connection.list_tables(limit=MAX_TABLES)).tables)

    async def _made(self, name: str, dimensions: int) -> Any:
        if name in await self._tables():
            return await self._connection.open_table(name)
        columns = _register_columns() if name == REGISTER else _columns(dimensions)
        return await self._connection.create_table(name, schema=columns, exist_ok=True)


_TEXT_COLUMNS = ["path", "first", "last", "piece", "text", "digest", "terms", "version", "label", "at"]


async def _connect(folder: Path) -> Any:
    import lancedb  # noqa: PLC0415  an extra of its own, and seconds to load

    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    return await lancedb.connect_async(folder, read_consistency_interval=timedelta(0))


def _columns(dimensions: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415  comes with the extra

    names = (
        "id",
        "row",
        "owner",
        "kind",
        "generation",
        "place",
        "path",
        "text",
        "digest",
        "version",
        "label",
        "at",
    )
    columns = [pa.field(name, pa.string()) for name in names]
    columns += [pa.field(name, pa.int64()) for name in ("first", "last", "piece", "length")]
    columns.append(pa.field("terms", pa.list_(pa.string())))
    if dimensions:
        columns.append(pa.field("vector", pa.list_(pa.float32(), dimensions)))
    return pa.schema(columns)


def _register_columns() -> Any:
    import pyarrow as pa  # noqa: PLC0415  comes with the extra

    names = ("id", "owner", "live", "made")
    return pa.schema([*(pa.field(name, pa.string()) for name in names), pa.field("serial", pa.int64())])


def _rows(generation: Generation, passages: Sequence[Passage]) -> Any:
    import pyarrow as pa  # noqa: PLC0415  comes with the extra

    # Of two rows with one id the last counts, as in Redis; a merge refuses to choose.
    rows = {passage.id: _row(generation, passage) for passage in passages}
    return pa.Table.from_pylist(list(rows.values()), schema=_columns(generation.dimensions))


def _row(generation: Generation, passage: Passage) -> dict[str, Any]:
    row = {
        "id": f"{_hashed(generation.owner)}/{generation.id}/{passage.id}",
        "row": passage.id,
        "owner": _hashed(generation.owner),
        "kind": str(generation.kind),
        "generation": generation.id,
        "place": _hashed(passage.path),
        "path": _clean(passage.path),
        "text": _clean(passage.text),
        "digest": passage.digest,
        "version": passage.version,
        "label": _clean(passage.label),
        "at": passage.at.isoformat() if passage.at else "",
        "first": passage.first,
        "last": passage.last,
        "piece": passage.piece,
        "length": len(passage.terms),
        "terms": list(passage.terms),
    }
    if generation.dimensions:
        row["vector"] = None if passage.vector is None else np.asarray(passage.vector, np.float32)
    return row


def _passage(row: Mapping[str, Any]) -> Passage:
    vector = row.get("vector")
    return Passage(
        path=row["path"],
        first=row["first"],
        last=row["last"],
        piece=row["piece"],
        text=row["text"],
        digest=row["digest"],
        terms=tuple(row["terms"]),
        version=row["version"],
        label=row["label"],
        at=datetime.fromisoformat(row["at"]) if row["at"] else None,
        vector=None if vector is None else np.asarray(vector, np.float32),
    )


def _within(generation: Generation) -> str:
    """Stands in every condition, before any ranking (O85)."""
    return f"owner = '{_hashed(generation.owner)}' AND generation = '{generation.id}'"


def _quoted(values: Sequence[str]) -> str:
    """SQL string literals: the one door for a word of a query."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)


def _hashed(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _clean(text: str) -> str:
    """Arrow takes no lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


@contextmanager
def _faults() -> Iterator[None]:
    """LanceDB's errors as ours, without the text of a query."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise StoreFault("LanceDB is not installed: install memagent[lancedb]") from error
    except OSError as error:
        raise StoreUnavailable(
            f"the LanceDB folder cannot be used ({type(error).__name__}): check path and rights"
        ) from error
    except (RuntimeError, ValueError) as error:
        raise StoreFault(f"LanceDB refused a passage query ({type(error).__name__})") from error
