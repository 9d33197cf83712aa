//! Kernels that fold or rank along axes.
