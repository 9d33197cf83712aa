//! [`Machine`]: what an operator calculates and moves becomes the seconds that it takes.
//!
//! ~~~text
//! flops a second ^      ________   flops_per_second      an operator is bound by what it moves, or by what it
//!                |    /            limits                calculates, whichever takes longer; and each one that
//!                |  / bytes_per_second limits            runs costs a little by itself
//!                +-------------------> flops a byte
//! ~~~
//! The roofline model. Source: Williams, Waterman, Patterson, Roofline, 2009.

use crate::Cost;

/// How fast a machine is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Calculations a second; above 0.
    pub flops_per_second: f64,
    /// Bytes that are read or written a second; above 0.
    pub bytes_per_second: f64,
    /// What each operator costs before it calculates anything, in seconds; 0 or more.
    pub overhead_seconds: f64,
}

impl Default for Machine {
    /// One core of a server of these years: 70 Gflop/s, as the matrix products of our kernels reach, 10 GB/s, and a
    /// microsecond for each operator.
    fn default() -> Self {
        Self { flops_per_second: 7e10, bytes_per_second: 1e10, overhead_seconds: 1e-6 }
    }
}

impl Machine {
    /// Estimated seconds. What neither calculates nor moves anything, such as a view, is not run and takes no time.
    pub fn seconds(&self, cost: &Cost) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate needs no exact counts")]
        let [flops, read, written] =
            [cost.flops, cost.read_bytes, cost.written_bytes].map(|count| count as f64);
        let moved = read + written;
        if flops == 0.0 && moved == 0.0 {
            return 0.0;
        }
        let busy = (flops / self.flops_per_second).max(moved / self.bytes_per_second);
        busy + self.overhead_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(flops: u64, read_bytes: u64, written_bytes: u64) -> f64 {
        let machine =
            Machine { flops_per_second: 8.0, bytes_per_second: 2.0, overhead_seconds: 0.5 };
        machine.seconds(&Cost { flops, read_bytes, written_bytes, ..Cost::default() })
    }

    #[test]
    fn the_slower_of_calculating_and_moving_counts() {
        assert!((seconds(80, 2, 2) - 10.5).abs() < 1e-12);
        assert!((seconds(80, 20, 20) - 20.5).abs() < 1e-12);
    }

    #[test]
    fn a_view_takes_no_time() {
        assert!(seconds(0, 0, 0).abs() < 1e-12);
        assert!((seconds(1, 0, 0) - 0.625).abs() < 1e-12);
    }
}
