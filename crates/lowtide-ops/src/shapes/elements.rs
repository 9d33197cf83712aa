//! Elements of small tensors on the move: transposed, cut, gathered, put together.
//!
//! ~~~text
//! [1, 2, 3, 4] as [2, 2] ─ rows reversed ─ [[3, 4], [1, 2]] ─ Transpose ─ [[3, 1], [4, 2]]
//! ~~~
//! This is how exporters turn pads around. All here is bounded: no tensor with elements has many of them, and
//! of a tensor without any, whose other dimensions may be huge, nothing is told.

use crate::call::Call;
use crate::fact::{Element, Fact, MAX_ELEMENTS, count};

/// How far apart neighbours of each axis are.
fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for at in (1..dims.len()).rev() {
        strides[at - 1] = strides[at] * dims[at];
    }
    strides
}

/// The dimensions of a tensor that has elements, but not too many.
pub(super) fn sizes(dims: &[i64]) -> Option<Vec<usize>> {
    count(dims).filter(|count| (1..=MAX_ELEMENTS).contains(count))?;
    dims.iter().map(|&dim| usize::try_from(dim).ok()).collect()
}

/// The elements at all combinations of some indices of each axis, in order.
pub(super) fn pick(elements: &[Element], dims: &[usize], taken: &[Vec<usize>]) -> Vec<Element> {
    let places = combined(taken, &strides(dims));
    places.into_iter().filter_map(|at| elements.get(at).cloned()).collect()
}

/// Sums of one index times its stride for each axis; more than can be of use are left out.
fn combined(taken: &[Vec<usize>], strides: &[usize]) -> Vec<usize> {
    let mut places = vec![0];
    for (indices, stride) in taken.iter().zip(strides) {
        let longer =
            places.iter().flat_map(|place| indices.iter().map(move |at| place + at * stride));
        places = longer.take(MAX_ELEMENTS + 1).collect();
    }
    places
}

/// The elements of input 0 with its axes in another order.
pub(super) fn transpose(call: &Call<'_>, order: &[usize]) -> Option<Vec<Element>> {
    let (elements, dims) = (call.elements(0)?, sizes(&call.input(0).known_dims()?)?);
    let old = strides(&dims);
    let taken: Vec<Vec<usize>> = order.iter().map(|&at| (0..dims[at]).collect()).collect();
    let strides: Vec<usize> = order.iter().map(|&at| old[at]).collect();
    Some(combined(&taken, &strides).into_iter().map(|at| elements[at].clone()).collect())
}

/// The elements of input 0 at the indices of input 1 along an axis.
pub(super) fn gather(call: &Call<'_>, axis: usize) -> Option<Vec<Element>> {
    let (elements, dims) = (call.elements(0)?, call.input(0).known_dims()?);
    let len = dims[axis];
    let index = |at: i64| {
        let at = if at < 0 { at.checked_add(len)? } else { at };
        usize::try_from(at).ok().filter(|_| at < len)
    };
    let indices: Vec<usize> = call.ints_of(1)?.into_iter().map(index).collect::<Option<_>>()?;
    let dims = sizes(&dims)?;
    let mut taken: Vec<Vec<usize>> = dims.iter().map(|&len| (0..len).collect()).collect();
    taken[axis] = indices;
    Some(pick(elements, &dims, &taken))
}

/// The elements of all inputs behind each other along an axis.
pub(super) fn concat(call: &Call<'_>, to: &Fact, axis: usize) -> Option<Vec<Element>> {
    let dims = sizes(&to.known_dims()?)?;
    let rows: usize = dims[..axis].iter().product();
    let below: usize = dims[axis + 1..].iter().product();
    let mut all = Vec::new();
    for row in 0..rows {
        for at in (0..call.inputs.len()).filter(|&at| call.has(at)) {
            let len = usize::try_from(*call.input(at).known_dims()?.get(axis)?).ok()? * below;
            all.extend_from_slice(call.elements(at)?.get(row * len..(row + 1) * len)?);
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use crate::testing::infers;

    #[test]
    fn pads_are_turned_around_as_exporters_do_it() {
        infers(
            &[
                "input x 1 h",
                "weight p i64 4 = 1 2 0 3",
                "weight t i64 2 = -1 2",
                "a = Reshape(p, t)",
                "weight b i64 1 = -1",
                "weight e i64 1 = -9",
                "weight z i64 1 = 0",
                "c = Slice(a, b, e, z, b)",
                "d = Transpose(c)",
                "f = Reshape(d, b)",
                "y = Pad(x, f)",
            ],
            "f32 [4, h + 3]",
        );
    }

    #[test]
    fn matrices_are_gathered_and_put_together() {
        infers(
            &[
                "input x n",
                "weight a i64 2 2 = 1 2 3 4",
                "weight i i64 1 = 1",
                "g = Gather(a, i) {axis=1}",
                "c = Concat(g, g) {axis=1}",
                "weight r i64 1 = -1",
                "s = Reshape(c, r)",
                "y = Expand(x, s)",
            ],
            "f32 [2, 2, 4, 4]",
        );
    }
}
