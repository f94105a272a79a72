"""Run ``python -m evaluation.benchmark``."""

import sys

from evaluation.benchmark.card import main

sys.exit(main())
