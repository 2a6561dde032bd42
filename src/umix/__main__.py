"""``python -m umix`` is the command line."""

import sys

from umix.cli import main

sys.exit(main())
