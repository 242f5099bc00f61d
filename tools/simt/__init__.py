"""A CUDA device that the CPU stands for; see tools/emulate_cuda.py."""
