"""The machine in Amaranth HDL."""
