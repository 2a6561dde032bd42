"""What starts at once because it does not import torch."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from umix.cli import main
main(["--help"])
sys.exit("torch" in sys.modules)
"""


@pytest.mark.system
def test_help_is_printed_without_torch() -> None:
    assert subprocess.run([sys.executable, "-c", PROGRAM], stdout=subprocess.DEVNULL, check=False).returncode == 0
