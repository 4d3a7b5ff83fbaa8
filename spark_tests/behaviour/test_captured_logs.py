"""What tests read in `caplog.text` does not depend on the tests before them."""

from __future__ import annotations

import logging

import pytest
from pyspark.logger import PySparkLogger

# As pyspark does with each failed query: pytest gives its handlers to loggers that do not propagate.
PySparkLogger.getLogger("spark_tests.captured_logs").propagate = False


@pytest.fixture
def told_by_fixture(caplog: pytest.LogCaptureFixture) -> str:
    logging.getLogger("delta_ds").warning("from a fixture")
    return caplog.text


def test_a_logger_of_pyspark_does_not_turn_what_others_log_into_json(
    told_by_fixture: str, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("delta_ds").warning('quoted "as it is"')
    assert caplog.text.endswith('quoted "as it is"\n') and not caplog.text.startswith("{")
    assert told_by_fixture.endswith("from a fixture\n") and not told_by_fixture.startswith("{")
