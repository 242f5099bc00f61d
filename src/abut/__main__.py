"""``python -m abut`` is the ``abut`` command."""

import sys

from abut.cli import main

sys.exit(main())
