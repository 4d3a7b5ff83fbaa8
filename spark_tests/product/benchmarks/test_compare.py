"""What became slower is told by ratios: by those of the last release, of the cases that are measured now."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import compare
from benchmarks.compare import Change, changes, recorded

RATIOS = st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 100))


@given(RATIOS, RATIOS)
def test_exactly_the_cases_that_take_a_tenth_more_beside_the_peer_are_slower(
    then: dict[str, float], now: dict[str, float]
) -> None:
    slower = {change.case for change in changes(then, now) if change.slower}
    assert slower == {case for case in then.keys() & now.keys() if now[case] / then[case] > 1.1}


@given(RATIOS, RATIOS)
def test_every_case_is_told_once_and_the_worst_comes_first(
    then: dict[str, float], now: dict[str, float]
) -> None:
    found = changes(then, now)
    assert sorted(change.case for change in found) == sorted({**then, **now})
    factors = [change.factor for change in found if change.factor is not None]
    assert factors == sorted(factors, reverse=True)


def test_case_that_is_new_or_gone_is_not_slower() -> None:
    assert [(c.case, c.factor, c.slower) for c in changes({"gone": 1.0}, {"new": 9.0})] == [
        ("gone", None, False),
        ("new", None, False),
    ]
    assert Change("same", 2.0, 2.0).factor == 1.0


def test_recorded_ratios_are_those_of_the_cases_and_sizes_that_are_measured(tmp_path: Path) -> None:
    options = argparse.Namespace(peer_python="python", rounds=1)
    found = recorded()
    assert set(found["ratios"]) == set(compare.cases(options, tmp_path))
    assert found["sizes"] == compare.sizes()
    assert found["release"] and all(ratio > 0 for ratio in found["ratios"].values())


def test_some_cases_are_not_recorded_as_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["compare", "--peer-python", "python", "--record", "1.0", "--only", "checkpoint"]
    )
    with pytest.raises(SystemExit):
        compare.main()
    assert "leave --only out" in capsys.readouterr().err
