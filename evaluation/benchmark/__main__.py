"""Run ``python -m evaluation.benchmark``."""

import sys

from evaluation.benchmark.command import main

sys.exit(main())
