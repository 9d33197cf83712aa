//! How much of this process is resident, as Linux counts it; nothing elsewhere.
//!
//! ~~~text
//! reset ── the high-water mark falls to what is resident ── work ── most: the highest since
//! ~~~

use lowtide_core::Bytes;
use std::fs;

/// What is resident now, and the most since the last reset.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident {
    /// Now.
    pub now: Bytes,
    /// The most since the process began, or since the last reset.
    pub most: Bytes,
}

/// Reads the counters of the system; zeros where there are none.
pub fn read() -> Resident {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        Bytes(1024 * kib.unwrap_or(0))
    };
    Resident { now: of("VmRSS:"), most: of("VmHWM:") }
}

/// Lets the high-water mark fall to what is resident now, where the system can do that.
pub fn reset() {
    // Where it fails, the mark stays as high as it was: the figures are then too large, never too small.
    let _ = fs::write("/proc/self/clear_refs", "5");
}
