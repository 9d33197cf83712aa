//! Fields of a message without decoding them: bytes in, where each field stands out.
//!
//! ~~~text
//! bytes    3a 05  0a 03 61 62 63 ...
//! field 7  |────  whole  ──────|         number and wire type, length, content
//!                 |─ content ──|         in it again fields, or text, or elements
//! ~~~
//! Only headers are read, so the weights of a mapped file stay on disk. Every length is checked against
//! the bytes that are there. Groups, long gone from the format, are stepped over. Cost: linear in fields.

use std::ops::Range;

/// How deep groups may lie in each other, as in the decoder of messages.
const MAX_GROUPS: usize = 100;

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub(crate) struct Broken {
    what: &'static str,
    at: usize,
}

/// One field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// Where it stands, its header included.
    pub(crate) whole: Range<usize>,
    /// Where its bytes stand, if it is a message, text or packed elements.
    pub(crate) content: Option<Range<usize>>,
}

/// Walks the fields of a message that fills a range of some bytes.
pub(crate) struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
    end: usize,
}

impl<'b> Fields<'b> {
    /// The fields of the message that stands in `range`, which lies in `bytes`.
    pub(crate) fn new(bytes: &'b [u8], range: Range<usize>) -> Self {
        Self { bytes, at: range.start, end: range.end }
    }

    fn broken(&self, what: &'static str) -> Broken {
        Broken { what, at: self.at }
    }

    fn varint(&mut self) -> Result<u64, Broken> {
        let mut rest = &self.bytes[self.at..self.end];
        let value = varint(&mut rest).ok_or_else(|| self.broken("a number without end"))?;
        self.at = self.end - rest.len();
        Ok(value)
    }

    fn skip(&mut self, count: u64) -> Result<(), Broken> {
        let left = self.end - self.at;
        let count = usize::try_from(count).ok().filter(|&count| count <= left);
        self.at += count.ok_or_else(|| self.broken("a length past the end"))?;
        Ok(())
    }

    /// Number and wire type of the next field.
    fn key(&mut self) -> Result<(u32, u64), Broken> {
        let key = self.varint()?;
        let number = u32::try_from(key).ok().map(|key| key >> 3).filter(|&number| number > 0);
        Ok((number.ok_or_else(|| self.broken("a field without number"))?, key & 7))
    }

    /// Steps over what follows a key; returns the range of its bytes if it has a length.
    fn value(&mut self, number: u32, wire: u64) -> Result<Option<Range<usize>>, Broken> {
        match wire {
            0 => self.varint().map(|_| None),
            1 => self.skip(8).map(|()| None),
            5 => self.skip(4).map(|()| None),
            2 => {
                let length = self.varint()?;
                let start = self.at;
                self.skip(length)?;
                Ok(Some(start..self.at))
            }
            3 => self.group(number).map(|()| None),
            _ => Err(self.broken("an unknown wire type")),
        }
    }

    /// Steps over a group and the groups in it.
    fn group(&mut self, number: u32) -> Result<(), Broken> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            let (number, wire) = self.key()?;
            match wire {
                3 if open.len() >= MAX_GROUPS => return Err(self.broken("groups too deep")),
                3 => open.push(number),
                4 if number == innermost => {
                    open.pop();
                }
                4 => return Err(self.broken("the end of another group")),
                _ => {
                    self.value(number, wire)?;
                }
            }
        }
        Ok(())
    }

    fn field(&mut self) -> Result<Field, Broken> {
        let start = self.at;
        let (number, wire) = self.key()?;
        let content = self.value(number, wire)?;
        Ok(Field { number, whole: start..self.at, content })
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, Broken>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.end {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.end;
        }
        Some(field)
    }
}

/// Takes a number off the front: seven bits a byte, the lowest first, at most ten bytes.
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            let fits = index < 9 || byte < 2;
            *bytes = &bytes[index + 1..];
            return fits.then_some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(bytes: &[u8]) -> Result<Vec<Field>, String> {
        let fields: Result<_, Broken> = Fields::new(bytes, 0..bytes.len()).collect();
        fields.map_err(|broken| broken.to_string())
    }

    fn field(number: u32, whole: Range<usize>, content: Option<Range<usize>>) -> Field {
        Field { number, whole, content }
    }

    #[test]
    fn fields_stand_one_after_another() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'o', b'k', 0x1d, 1, 2, 3, 4];
        let wanted = [field(1, 0..3, None), field(2, 3..7, Some(5..7)), field(3, 7..12, None)];
        assert_eq!(walk(&bytes).unwrap(), wanted);
    }

    #[test]
    fn groups_are_stepped_over() {
        assert_eq!(walk(&[0x0b, 0x13, 0x14, 0x08, 1, 0x0c]).unwrap(), [field(1, 0..6, None)]);
        assert_eq!(walk(&[0x0b, 0x14]).unwrap_err(), "the end of another group at byte 2");
        assert_eq!(walk(&[0x0b; 200]).unwrap_err(), "groups too deep at byte 101");
    }

    #[test]
    fn what_is_cut_short_says_where() {
        assert_eq!(walk(&[0x0a, 5, 1]).unwrap_err(), "a length past the end at byte 2");
        assert_eq!(walk(&[0x08, 0x80]).unwrap_err(), "a number without end at byte 1");
        assert_eq!(walk(&[0x00]).unwrap_err(), "a field without number at byte 1");
        assert_eq!(walk(&[0x0e]).unwrap_err(), "an unknown wire type at byte 1");
    }

    #[test]
    fn a_number_has_64_bits() {
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(varint(&mut &largest[..]), Some(u64::MAX));
        let larger = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(varint(&mut &larger[..]), None);
        assert_eq!(varint(&mut &[0x80; 11][..]), None);
    }
}
