"""The library of the charts, Vega, Vega-Lite and Vega-Embed, as one script.

vl-convert puts it together, which takes seconds and lets no other thread run. So it is done once for each version of vl-convert, by
another process while the page is made, and the script is kept in the user's folder of caches.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from umix.errors import UserError
from umix.files import write_whole

_PROGRAM = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"


@contextmanager
def charts_library(caches: Path | None = None) -> Iterator[Callable[[], str]]:
    """Inside the block, a function that returns the script; it may have to wait for the process that makes it.

    ``caches`` is the folder of caches, by default ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    path = (caches or _caches()) / "umix" / "charts.js"
    head = f"// vl-convert {version('vl-convert-python')}\n"
    text = _read(path)
    if text.startswith(head):
        yield lambda: text.removeprefix(head)
        return
    with _started() as process:
        yield lambda: _script(process, path, head)


def _caches() -> Path:
    """The user's folder of caches; without a home it is one that does not exist and cannot be made."""
    with contextlib.suppress(RuntimeError):
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.devnull)


def _read(path: Path) -> str:
    """The text at ``path``; empty if there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


@contextmanager
def _started() -> Iterator["subprocess.Popen[bytes] | None"]:
    """Inside the block, the process that makes the script; None where none can be started."""
    command = [sys.executable, "-P", "-c", _PROGRAM]  # -P: a file of this name in the user's folder is not it
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except (OSError, ValueError):
        process = None
    if process is None:
        yield None
        return
    with process:
        try:
            yield process
        finally:
            process.kill()


def _script(process: "subprocess.Popen[bytes] | None", path: Path, head: str) -> str:
    """What ``process`` has written, which is kept at ``path``; where it failed, the script is made here."""
    content, _ = process.communicate() if process else (b"", None)
    text = content.decode() if process and process.returncode == 0 else _made_here()
    text = text.replace("</script", "<\\/script")
    with contextlib.suppress(UserError):  # a folder that cannot be written to
        write_whole(path, (head + text).encode())
    return text


def _made_here() -> str:
    import vl_convert

    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its snippet is optional, its stub says otherwise
    return bundle
