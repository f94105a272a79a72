"""Run ``python -m evaluation.aivat``."""

import sys

from evaluation.aivat.command import main

sys.exit(main())
