"""Coordination of building and machine models: rules, verdicts, groups and reports of clashes.

The room is not called clash, because the verb ``abut.clash`` is.
"""
