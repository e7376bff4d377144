// The file whose precompiled header the libraries over MLIR share (Heed.cmake).
