//! [`ReadOptions`]: how a file is read, and what comes with it.
//!
//! ~~~text
//! model.onnx     ── mmap ──────> Data ──limits──> Model
//! model.weights  ── external ──────────────────────^
//! ~~~

use crate::Limits;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// What it may hold.
    pub limits: Limits,
    /// Map files into memory instead of reading them. The weights of a mapped file cost memory only once
    /// they are used; but the file has to stay as it is for as long as the model lives. If another
    /// process writes to it, weights change; if it cuts it, touching what is gone ends the process with
    /// SIGBUS. Switch this off for files that may change underneath.
    pub mmap: bool,
    /// What becomes of weights in other files.
    pub external: External,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), mmap: true, external: External::Load }
    }
}

impl From<Limits> for ReadOptions {
    fn from(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }
}

/// What becomes of weights that lie in other files than the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum External {
    /// They are loaded. A file that is not there leaves its weights without values and gives a warning;
    /// a bad path, offset or length is an error.
    #[default]
    Load,
    /// Their files are not looked at, the weights have no values. A plan needs none.
    Skip,
}
