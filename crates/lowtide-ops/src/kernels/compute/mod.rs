//! Kernels whose output elements depend on many input elements: products, convolutions, pools.
