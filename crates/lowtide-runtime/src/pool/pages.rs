//! [`Pages`]: which pages of a segment are resident.
//!
//! ~~~text
//! page       0 1 2 3 4 5 6 7 ...
//! bit        1 1 1 0 0 1 1 0          mark [1, 5): pages 3 and 4 become memory        clear [0, 2): pages 0 and 1 go back
//! ~~~
//! One bit a page, looked at a word of 64 pages at a time: 256 words for 64 MiB.

use std::ops::Range;

/// Bytes of a page. Where the system has larger ones nothing is given back.
pub(super) const PAGE: u64 = 4096;

/// Bits of pages.
#[derive(Debug, Default)]
pub(super) struct Pages(Vec<u64>);

impl Pages {
    /// For a segment of so many bytes, of which no page is resident.
    pub(super) fn new(bytes: u64) -> Self {
        let words = bytes.div_ceil(PAGE * 64);
        Self(vec![0; usize::try_from(words).expect("it is mapped")])
    }

    /// Pages that any of these bytes lies in.
    pub(super) fn around(start: u64, bytes: u64) -> Range<u64> {
        start / PAGE..(start + bytes).div_ceil(PAGE)
    }

    /// Pages that lie in these bytes as a whole.
    pub(super) fn inside(start: u64, bytes: u64) -> Range<u64> {
        let first = start.div_ceil(PAGE);
        first..((start + bytes) / PAGE).max(first)
    }

    /// Words, and which bits of each are meant.
    fn words(pages: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
        let end = if pages.is_empty() { 0 } else { pages.end.div_ceil(64) };
        let words = pages.start / 64..end;
        words.map(move |word| {
            let first = pages.start.max(word * 64) - word * 64;
            let count = pages.end.min(word * 64 + 64) - word * 64 - first;
            let mask = (u64::MAX >> (64 - count)) << first;
            (usize::try_from(word).expect("it is mapped"), mask)
        })
    }

    /// These become resident; how many were not.
    pub(super) fn mark(&mut self, pages: Range<u64>) -> u64 {
        let mut new = 0;
        for (word, mask) in Self::words(pages) {
            new += u64::from((mask & !self.0[word]).count_ones());
            self.0[word] |= mask;
        }
        new
    }

    /// These go back; how many were resident.
    pub(super) fn clear(&mut self, pages: Range<u64>) -> u64 {
        let mut gone = 0;
        for (word, mask) in Self::words(pages) {
            gone += u64::from((mask & self.0[word]).count_ones());
            self.0[word] &= !mask;
        }
        gone
    }

    /// How many of these are resident.
    pub(super) fn count(&self, pages: Range<u64>) -> u64 {
        Self::words(pages).map(|(word, mask)| u64::from((mask & self.0[word]).count_ones())).sum()
    }

    /// Of these as many of the last as have so many resident ones, or all.
    pub(super) fn last(&self, pages: Range<u64>, resident: u64) -> Range<u64> {
        let mut start = pages.end;
        let mut found = 0;
        while start > pages.start && found < resident {
            start -= 1;
            found += self.count(start..start + 1);
        }
        start..pages.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_pages() {
        let mut pages = Pages::new(200 * PAGE);
        assert_eq!((pages.mark(60..140), pages.mark(0..64)), (80, 60));
        assert_eq!((pages.count(0..200), pages.count(139..141)), (140, 1));
        assert_eq!((pages.last(0..200, 10), pages.last(0..200, 500)), (130..200, 0..200));
        assert_eq!((pages.clear(64..128), pages.clear(64..129), pages.count(0..200)), (64, 1, 75));
        assert_eq!((pages.mark(5..5), pages.count(64..64)), (0, 0));
    }

    #[test]
    fn whole_pages_lie_inside() {
        assert_eq!((Pages::around(4095, 2), Pages::inside(4095, 2)), (0..2, 1..1));
        assert_eq!((Pages::around(0, 8192), Pages::inside(1, 12287)), (0..2, 1..3));
        assert_eq!(Pages::inside(256, 512), 1..1);
    }
}
