"""The structs that kernels receive: posed meshes, posed pairs, motions, scenes."""
