//! Where output goes: data to stdout and to files, messages to stderr.

use anyhow::Context;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A message for the person at the terminal.
#[expect(clippy::print_stderr, reason = "this is the one place that speaks to stderr")]
pub(super) fn message(text: &str) {
    eprintln!("{text}");
}

/// Data for stdout.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// Creates a file and lets `fill` write it.
pub(super) fn write_file<E: Into<anyhow::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        anyhow::bail!("`-` is no file to write: standard output carries the figures");
    }
    let write = || -> anyhow::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        fill(&mut out).map_err(Into::into)?;
        Ok(out.flush()?)
    };
    write().with_context(|| format!("cannot write `{}`", path.display()))
}

/// Reads a file.
pub(super) fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))
}
