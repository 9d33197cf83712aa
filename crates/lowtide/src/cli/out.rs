//! Where output goes: data to stdout and to files, messages to stderr.

use anyhow::Context;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

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

/// Lets `fill` write a file. It is written beside the target and then takes its name, so that a failure leaves
/// what was there, and a file that is mapped, as the model may be, is never cut under our feet. What is no
/// plain file, such as a pipe, is written directly.
pub(super) fn write_file<E: Into<anyhow::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> anyhow::Result<()> {
    if path.as_os_str() == "-" {
        anyhow::bail!("`-` is no file to write: standard output carries the figures");
    }
    let write = |target: &Path, file: io::Result<File>| -> anyhow::Result<()> {
        let mut out = BufWriter::new(file?);
        fill(&mut out).map_err(Into::into)?;
        out.flush()?;
        drop(out);
        if target == path { Ok(()) } else { Ok(std::fs::rename(target, path)?) }
    };
    let is_plain = path.metadata().map_or(true, |metadata| metadata.is_file());
    let written = if is_plain {
        let beside = beside(path);
        let written = write(&beside, File::create_new(&beside));
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written
    } else {
        write(path, File::create(path))
    };
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

/// A name in the same folder that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Refuses to write over what is read, or one file twice.
pub(super) fn check_targets(inputs: &[&Path], targets: &[Option<&Path>]) -> anyhow::Result<()> {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut taken: Vec<PathBuf> = inputs.iter().map(|path| place(path)).collect();
    for target in targets.iter().copied().flatten() {
        let here = place(target);
        if taken.contains(&here) {
            anyhow::bail!(
                "`{}` is read, or written, already: it wants another name",
                target.display()
            );
        }
        taken.push(here);
    }
    Ok(())
}

/// Reads a file.
pub(super) fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))
}
