//! [`WeightReport`]: what the values of a model cost before it runs; and [`aligned`], which pays for one.
//!
//! ~~~text
//! file  |..|w0 w0 w0|.|w1 w1|....        w0 at a multiple of its element size: used where it lies
//!        0  4        17                  w1 not: copied once; typed numbers: copied while reading
//! ~~~

use lowtide_core::{Align, Bytes, DType, Data, TensorValue};

/// Where the values of weights and of tensors in attributes are, and what had to be copied.
///
/// Addresses count as they are in this process: a mapped file begins at a page, one that was read anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightReport {
    /// All values that were found: in place, unaligned and decoded.
    pub total: Bytes,
    /// Usable where they lie in a file, since they begin at a multiple of their element size.
    pub in_place: Bytes,
    /// Of those in place: what begins at a multiple of 64.
    pub in_place_64: Bytes,
    /// In a file too, but to be copied once before use, since they begin elsewhere; see [`aligned`].
    pub unaligned: Bytes,
    /// Written out while reading, since the file holds them in another form.
    pub decoded: Bytes,
    /// Of the total: what lies in other files than the model.
    pub external: Bytes,
    /// Values without which the model was read: of other files that are not there, or were not wanted.
    pub absent: Bytes,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    File,
    OtherFile,
    Decoded,
}

impl WeightReport {
    pub(crate) fn count(&mut self, value: &TensorValue, origin: Origin) {
        let Some(data) = &value.data else { return };
        let bytes = data.len() as u64;
        add(&mut self.total, bytes);
        if origin == Origin::OtherFile {
            add(&mut self.external, bytes);
        }
        if origin == Origin::Decoded {
            return add(&mut self.decoded, bytes);
        }
        if !is_aligned(data, element_align(value.dtype)) {
            return add(&mut self.unaligned, bytes);
        }
        add(&mut self.in_place, bytes);
        if is_aligned(data, Align::CACHE_LINE) {
            add(&mut self.in_place_64, bytes);
        }
    }

    pub(crate) fn count_absent(&mut self, bytes: u64) {
        add(&mut self.absent, bytes);
    }
}

/// Many tensors may lie in the same bytes, so their sum has no bound.
fn add(sum: &mut Bytes, bytes: u64) {
    sum.0 = sum.0.saturating_add(bytes);
}

/// What the elements of a type want: their own size, a byte if they are narrower.
fn element_align(dtype: DType) -> Align {
    dtype.bytes(1).and_then(|bytes| Align::new(bytes.0)).unwrap_or(Align::ONE)
}

fn is_aligned(data: &Data, align: Align) -> bool {
    Bytes(data.as_ptr().addr() as u64).is_aligned(align)
}

/// The same bytes at an address that is a multiple of `align`: copied once if they lie elsewhere.
///
/// ~~~
/// use lowtide_core::{Align, Data};
/// let data = Data::from(vec![7; 100]);
/// let aligned = lowtide_onnx::aligned(&data.slice(1..), Align::CACHE_LINE);
/// assert_eq!(aligned.as_ptr().addr() % 64, 0);
/// assert_eq!(aligned, data[1..]);
/// ~~~
#[must_use]
pub fn aligned(data: &Data, align: Align) -> Data {
    if is_aligned(data, align) {
        return data.clone();
    }
    let align = usize::try_from(align.bytes().0).expect("an alignment is at most 2 MiB");
    let mut memory: Vec<u8> = Vec::with_capacity(data.len() + align - 1);
    let gap = memory.as_ptr().addr().wrapping_neg() % align;
    memory.resize(gap, 0);
    memory.extend_from_slice(data);
    Data::from(memory).slice(gap..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_lie_right_are_not_copied() {
        let base = aligned(&Data::from(vec![1; 200]), Align::CACHE_LINE);
        for (offset, align, moves) in [(0, 64, false), (4, 4, false), (4, 8, true), (1, 2, true)] {
            let part = base.slice(offset..100);
            let found = aligned(&part, Align::new(align).unwrap());
            assert_eq!(found.as_ptr() != part.as_ptr(), moves);
            assert_eq!((found.as_ptr().addr() as u64 % align, &found), (0, &part));
        }
    }

    #[test]
    fn every_byte_is_counted_once() {
        let base = aligned(&Data::from(vec![1; 200]), Align::CACHE_LINE);
        let value = |range| {
            let data = Some(base.slice(range));
            TensorValue { dtype: DType::F32, dims: vec![], data }
        };
        let mut report = WeightReport::default();
        report.count(&value(0..100), Origin::File);
        report.count(&value(4..14), Origin::OtherFile);
        report.count(&value(1..2), Origin::File);
        report.count(&value(0..1), Origin::Decoded);
        let wanted = WeightReport {
            total: Bytes(112),
            in_place: Bytes(110),
            in_place_64: Bytes(100),
            unaligned: Bytes(1),
            decoded: Bytes(1),
            external: Bytes(10),
            ..WeightReport::default()
        };
        assert_eq!(report, wanted);
    }
}
