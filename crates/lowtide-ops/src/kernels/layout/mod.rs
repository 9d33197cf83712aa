//! Kernels that move elements, or make them, but calculate nothing with them.
