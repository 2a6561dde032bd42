"""The page of the command line: every command with its flags, as its help has them."""

import re

from umix.cli import app

_INTRODUCTION = """\
# The command line

`umix COMMAND --help` shows one command, `umix --version` the version. Tables go to the standard output; warnings, notes and
progress go to the standard error.

| exit code | |
|---|---|
| 0 | done |
| 1 | a run has failed, or the machine has (no memory, a full disk) |
| 2 | the input is wrong or the data are broken; one sentence says what |
| 130, 143 | Ctrl-C, SIGTERM |
"""


def command_page() -> str:
    """The page of all commands."""
    text = app.generate_docs(output_format="markdown", heading_level=1)
    commands = text[text.index("**Commands**:") :].removeprefix("**Commands**:\n\n")
    commands = re.sub(r" \*\[default: (?:False|\(\))\]\*", "", commands)  # a flag that is not given
    commands = re.sub(r"docs/(how-to|explanation)/([\w-]+)\.md", r"[\2](../\1/\2.md)", commands)
    return _INTRODUCTION + "\n" + commands.replace("```console\n", "```text\n") + "\n"
