"""What holds for every test: how Hypothesis looks for examples."""

import os

from hypothesis import HealthCheck, settings

# No deadlines: how long an example takes is the machine's business, and a test that depends on it fails at random.
settings.register_profile("dev", deadline=None)
# The same examples on every run, so that a red build is red again on the next machine.
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
# For an evening's hunt: HYPOTHESIS_PROFILE=thorough make test
settings.register_profile(
    "thorough", deadline=None, max_examples=5_000, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
