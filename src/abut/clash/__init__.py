"""Clash detection: rules, verdicts, groups and reports for building and machine models."""
