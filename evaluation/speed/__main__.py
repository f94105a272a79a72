"""Run ``python -m evaluation.speed``."""

import sys

from evaluation.speed.command import main

sys.exit(main())
