"""Benchmarks of abut beside other libraries."""
