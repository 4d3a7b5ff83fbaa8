"""Tests of reports and listeners."""
