"""Run ``python -m evaluation.pictures``."""

import sys

from evaluation.pictures.charts import main

sys.exit(main())
