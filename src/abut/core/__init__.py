"""Devices, launches, caches, pair queues and their sorting, warp intrinsics, arrays in."""
