"""What tests of jobs on a cluster share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # fluid and cases lie beside the tests
