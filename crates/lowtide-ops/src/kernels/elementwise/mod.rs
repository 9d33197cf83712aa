//! Kernels that calculate element i of the output from element i of each input.
