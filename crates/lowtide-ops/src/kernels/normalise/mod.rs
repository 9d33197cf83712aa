//! Kernels that scale rows or channels by statistics of their own.
