"""Run ``python -m evaluation.best_response``."""

import sys

from evaluation.best_response.command import main

sys.exit(main())
