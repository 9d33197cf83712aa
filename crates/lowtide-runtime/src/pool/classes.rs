//! [`SizeClasses`]: bytes to a class, and back to the bytes of its blocks.
//!
//! ~~~text
//! 300 B ──of──> class 1 ──size──> 320 B       256, 320, 384, 448, 512, 640, ...      four a doubling
//! ~~~
//! Blocks of one class are alike, so that any of them serves any request of the class: what is lost in a block is bounded by
//! the step to the next class. Cost of a look-up: the classes of one doubling.

use lowtide_core::Bytes;

/// Sizes and offsets of blocks are multiples of this.
pub(crate) const UNIT: u64 = 256;

/// Nobody asks for more at once.
const LARGEST: u64 = 1 << 40;

/// So many classes fit into the bitmap of those that have free spans.
pub(super) const MOST_CLASSES: usize = 128;

/// Sizes of blocks, ascending: all multiples of 256 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeClasses {
    sizes: Vec<u64>,
    /// By the bits of a number of bytes: the first class that can hold the least such number.
    first: Vec<u8>,
}

/// Why sizes are no classes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClassesError {
    /// There is none, or there are too many with those above.
    #[error("{found} size classes with those up to 1 TiB, wanted 1 to {MOST_CLASSES}")]
    Count {
        /// How many.
        found: usize,
    },
    /// They do not ascend.
    #[error("size class {class} has {found}, wanted more than the one before, at most 1 TiB")]
    Order {
        /// Which.
        class: usize,
        /// Its size.
        found: Bytes,
    },
}

impl SizeClasses {
    /// So many a doubling, evenly spaced, from 256 bytes up: 1, 2 or 4. What a request of random size loses in its block is on
    /// average 25, 14 or 9 % of the block.
    ///
    /// # Errors
    /// With another number.
    pub fn a_doubling(number: u64) -> Result<Self, ClassesError> {
        if ![1, 2, 4].contains(&number) {
            return Err(ClassesError::Count {
                found: usize::try_from(number).unwrap_or(usize::MAX),
            });
        }
        // Below 1 KiB fewer, as all are multiples of 256 bytes.
        let doubling = |base: u64| {
            let steps = number.min(base / UNIT);
            (0..steps).map(move |step| base + base / steps * step)
        };
        let bases = (0..32).map(|doublings| UNIT << doublings);
        Self::new(bases.flat_map(doubling).map(Bytes))
    }

    /// 256 KiB, 1, 4, 16 and 64 MiB, and on by fours.
    pub fn ladder() -> Self {
        let sizes = (0..5).map(|rung| Bytes(256 << 10 << (2 * rung)));
        Self::new(sizes).expect("five sizes ascend")
    }

    /// These, rounded up to multiples of 256 bytes; above the largest each class is four times the one before, up to 1 TiB.
    ///
    /// # Errors
    /// If they do not ascend, or are too many.
    pub fn new(sizes: impl IntoIterator<Item = Bytes>) -> Result<Self, ClassesError> {
        let mut rounded: Vec<u64> = Vec::new();
        for (class, Bytes(size)) in sizes.into_iter().enumerate() {
            if class >= MOST_CLASSES {
                return Err(ClassesError::Count { found: class + 1 });
            }
            let bytes = size.clamp(1, LARGEST + 1).next_multiple_of(UNIT);
            if bytes > LARGEST || rounded.last().is_some_and(|&last| bytes <= last) {
                return Err(ClassesError::Order { class, found: Bytes(size) });
            }
            rounded.push(bytes);
        }
        let Some(&last) = rounded.last() else { return Err(ClassesError::Count { found: 0 }) };
        let above = std::iter::successors(Some(last), |&last| Some((last * 4).min(LARGEST)));
        rounded.extend(above.skip(1).take_while(|&size| size < LARGEST));
        if rounded.last() != Some(&LARGEST) {
            rounded.push(LARGEST);
        }
        if rounded.len() > MOST_CLASSES {
            return Err(ClassesError::Count { found: rounded.len() });
        }
        Ok(Self::indexed(rounded))
    }

    fn indexed(sizes: Vec<u64>) -> Self {
        let first = (0..=LARGEST.ilog2() + 2).map(|bits| {
            let least = if bits == 0 { 0 } else { 1 << (bits - 1) };
            u8::try_from(sizes.partition_point(|&size| size < least)).expect("classes are few")
        });
        Self { first: first.collect(), sizes }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Never.
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Bytes of a block of a class.
    ///
    /// # Panics
    /// If there is no such class.
    #[inline]
    pub fn size(&self, class: usize) -> Bytes {
        Bytes(self.sizes[class])
    }

    /// The smallest class whose blocks hold so many bytes; none above 1 TiB.
    #[inline]
    pub fn of(&self, bytes: Bytes) -> Option<usize> {
        let bits = u64::BITS - bytes.0.leading_zeros();
        let first = usize::from(*self.first.get(bits as usize)?);
        let end = usize::from(*self.first.get(bits as usize + 1)?);
        // Counted and not searched: where in a doubling a size lies cannot be predicted.
        let smaller = self.sizes[first..end].iter().filter(|&&size| size < bytes.0).count();
        (bytes.0 <= LARGEST).then_some(first + smaller)
    }

    /// The largest class of which a block fits into so many bytes; none if they are too few.
    pub(super) fn within(&self, bytes: u64) -> Option<usize> {
        let above = self.of(Bytes(bytes + 1)).unwrap_or(self.sizes.len());
        above.checked_sub(1)
    }
}

impl Default for SizeClasses {
    fn default() -> Self {
        Self::a_doubling(4).expect("four a doubling")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_smallest_that_fits() {
        let custom = SizeClasses::new([Bytes(1000), Bytes(70_000), Bytes(70_500)]).unwrap();
        let two = SizeClasses::a_doubling(2).unwrap();
        for classes in [SizeClasses::default(), SizeClasses::ladder(), two, custom] {
            let sizes: Vec<u64> = (0..classes.len()).map(|class| classes.size(class).0).collect();
            assert!(sizes.is_sorted() && sizes.iter().all(|size| size.is_multiple_of(UNIT)));
            let near = sizes.iter().flat_map(|&size| [size - 1, size, size + 1]);
            for bytes in near.chain([0, 1, 255]) {
                let wanted = sizes.iter().position(|&size| size >= bytes);
                assert_eq!(classes.of(Bytes(bytes)), wanted, "{bytes}");
                let within = sizes.iter().rposition(|&size| size <= bytes);
                assert_eq!(classes.within(bytes), within, "{bytes}");
            }
        }
    }

    #[test]
    fn four_a_doubling_lose_a_fifth_at_most() {
        let classes = SizeClasses::default();
        let sizes: Vec<u64> = (0..8).map(|class| classes.size(class).0).collect();
        assert_eq!(sizes, [256, 512, 768, 1024, 1280, 1536, 1792, 2048]);
        for class in 4..classes.len() {
            let (below, size) = (classes.size(class - 1).0, classes.size(class).0);
            assert!(size - below - 1 <= size / 5, "{size}");
        }
    }

    #[test]
    fn what_is_no_list_of_classes_is_refused() {
        let of = |sizes: &[u64]| SizeClasses::new(sizes.iter().map(|&size| Bytes(size)));
        assert_eq!(of(&[]).unwrap_err(), ClassesError::Count { found: 0 });
        let message = of(&[512, 300]).unwrap_err().to_string();
        let wanted = "size class 1 has 300 B, wanted more than the one before, at most 1 TiB";
        assert_eq!(message, wanted);
        assert!(of(&[u64::MAX]).is_err());
        let many: Vec<u64> = (1..200).map(|at| at * 256).collect();
        assert_eq!(of(&many).unwrap_err(), ClassesError::Count { found: 129 });
        assert!(SizeClasses::a_doubling(3).is_err());
    }
}
