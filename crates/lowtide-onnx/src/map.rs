//! A file's bytes: mapped into memory, or read into it.
//!
//! ~~~text
//! mapped   file ── pages come when they are touched ──> Data      weights that nobody reads stay on disk
//! read     file ── all of it, now ────────────────────> Data      for files that may change underneath
//! ~~~
//! What is no ordinary file (a pipe, say) is read, whatever was asked for.

#![expect(unsafe_code, reason = "mapping a file rests on nobody changing it")]

use lowtide_core::Data;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file; if it has more than `limit`, at least one more than that.
pub(crate) fn contents(path: &Path, mmap: bool, limit: u64) -> io::Result<Data> {
    let file = File::open(path)?;
    if mmap && file.metadata()?.is_file() {
        return map(&file);
    }
    let mut bytes = Vec::new();
    // One byte past the limit is enough to know that there are too many, whatever the length says.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Data::from(bytes))
}

fn map(file: &File) -> io::Result<Data> {
    // SAFETY: the map is only read. That nobody changes or cuts the file while it is mapped is what
    // `ReadOptions::mmap` asks of the caller; text is copied out of the map when it is checked, so a
    // change that happens all the same can give wrong weights or a SIGBUS, not a broken `str`.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Data::from_owner(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    #[test]
    fn both_ways_give_the_same_bytes() {
        for content in [&b""[..], b"lowtide"] {
            let file = file(content);
            for mmap in [true, false] {
                assert_eq!(contents(file.path(), mmap, 100).unwrap(), content);
            }
        }
    }

    #[test]
    fn no_more_is_read_than_shows_that_it_is_too_much() {
        let file = file(b"lowtide");
        assert_eq!(contents(file.path(), false, 3).unwrap(), "lowt");
    }
}
