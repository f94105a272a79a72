"""Run ``python -m evaluation.aivat``."""

import sys

from evaluation.aivat.match import main

sys.exit(main())
