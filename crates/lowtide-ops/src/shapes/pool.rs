//! Rules of pools.
//!
//! ~~~text
//! x [n, c, h, w] ──MaxPool 2x2, stride 2──>  [n, c, h/2, w/2], and where each maximum was
//! x [n, c, h, w] ──GlobalAveragePool──>      [n, c, 1, 1]
//! ~~~

use super::window::{Windows, check_len, kernel_shape};
use super::{ranked_at_least, whole};
use crate::call::{Call, Facts, Misfit};
use crate::fact::{Extent, Fact};
use lowtide_core::DType;

/// `MaxPool`, `AveragePool`, `LpPool`, `MaxpoolWithMask`.
pub(crate) fn pool(call: &Call<'_>) -> Facts {
    let dims = pooled(call, call.dims(0))?;
    let indices = Fact::new(Some(DType::I64), dims.clone());
    let facts = [call.typed(0, dims), indices];
    Ok(facts.into_iter().take(call.output_count()).collect())
}

fn pooled(call: &Call<'_>, dims: Option<&[Extent]>) -> Result<Option<Vec<Extent>>, Misfit> {
    let Some(kernel) = kernel_shape(call) else {
        return Err(Misfit("it has no kernel_shape".to_owned()));
    };
    let rank = kernel.len();
    let Some(dims) = dims else { return Ok(Some(vec![None; rank + 2])) };
    if dims.len() != rank + 2 {
        let found = dims.len();
        return Err(Misfit(format!("input 0 has rank {found}, wanted {}", rank + 2)));
    }
    let windows = Windows::read(call, kernel)?;
    let spatial = &dims[2..];
    let fitted = if call.flag("ceil_mode") {
        windows.fit_hanging_over(spatial)?
    } else {
        windows.fit(spatial)?
    };
    Ok(Some([dims[..2].to_vec(), fitted].concat()))
}

/// A pool of one window a channel.
pub(crate) fn global(call: &Call<'_>) -> Facts {
    let dims = ranked_at_least(call, 0, 2)?.map(|dims| {
        let ones = vec![whole(1); dims.len() - 2];
        [dims[..2].to_vec(), ones].concat()
    });
    Ok(vec![call.typed(0, dims)])
}

/// A pool whose channels come last, if an attribute says so.
pub(crate) fn quantised(call: &Call<'_>) -> Facts {
    if !call.flag("channels_last") {
        return Ok(vec![call.typed(0, pooled(call, call.dims(0))?)]);
    }
    channels_last(call)
}

/// A pool whose channels come last.
pub(crate) fn channels_last(call: &Call<'_>) -> Facts {
    let first = call.dims(0).map(channels_to_front);
    let dims = pooled(call, first.as_deref())?.map(|mut dims| {
        let channels = dims.remove(1);
        dims.push(channels);
        dims
    });
    Ok(vec![call.typed(0, dims)])
}

fn channels_to_front(dims: &[Extent]) -> Vec<Extent> {
    let mut dims = dims.to_vec();
    if dims.len() >= 2 {
        dims[1..].rotate_right(1);
    }
    dims
}

/// The global one of these.
pub(crate) fn global_quantised(call: &Call<'_>) -> Facts {
    if !call.flag("channels_last") {
        return global(call);
    }
    let dims = ranked_at_least(call, 0, 2)?.map(|dims| {
        let mut ones = vec![whole(1); dims.len()];
        ones[0].clone_from(&dims[0]);
        ones[dims.len() - 1].clone_from(&dims[dims.len() - 1]);
        ones
    });
    Ok(vec![call.typed(0, dims)])
}

/// `MaxUnpool`: each maximum goes back to where it was; the shape may be an input.
pub(crate) fn unpool(call: &Call<'_>) -> Facts {
    if call.has(2) {
        let rank = call.rank(0).or(super::rank_by(call, 2));
        let dims = call.exprs(2).or(rank.map(|rank| vec![None; rank]));
        return Ok(vec![call.typed(0, dims)]);
    }
    let Some(dims) = ranked_at_least(call, 0, 2)? else { return Ok(vec![call.typed(0, None)]) };
    let kernel = kernel_shape(call).unwrap_or_default();
    check_len("kernel_shape", kernel.len(), dims.len() - 2)?;
    let windows = Windows::read(call, kernel)?;
    let spread = windows.spread(&dims[2..], &vec![0; dims.len() - 2]);
    Ok(vec![call.typed(0, Some([dims[..2].to_vec(), spread].concat()))])
}

/// `MaxRoiPool`: an image for each region.
pub(crate) fn roi(call: &Call<'_>) -> Facts {
    let size = call.ints("pooled_shape").unwrap_or_default();
    check_len("pooled_shape", size.len(), 2)?;
    let dims = vec![call.dim(1, 0), call.dim(0, 1), whole(size[0]), whole(size[1])];
    Ok(vec![call.typed(0, Some(dims))])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn a_pool_keeps_batch_and_channels() {
        infers(
            &["input x n 3 32 32", "y; i = MaxPool(x) {kernel_shape=[2, 2], strides=[2, 2]}"],
            "f32 [n, 3, 16, 16]; i64 [n, 3, 16, 16]",
        );
        infers(
            &["input x 1 3 32 32", "y = AveragePool(x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}"],
            "f32 [1, 3, 32, 32]",
        );
    }

    #[test]
    fn the_last_window_may_hang_over_the_end_but_not_begin_behind_it() {
        infers(
            &[
                "input x 1 1 4 4",
                "y = MaxPool(x) {kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1}",
            ],
            "f32 [1, 1, 2, 2]",
        );
        infers(
            &[
                "input x 1 1 2 2",
                "y = MaxPool(x) {kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1}",
            ],
            "f32 [1, 1, 1, 1]",
        );
        infers(
            &["input x 1 1 h", "y = MaxPool(x) {kernel_shape=[3], strides=[2], ceil_mode=1}"],
            "f32 [1, 1, floor(h/2)]",
        );
    }

    #[test]
    fn dilated_windows_reach_further() {
        infers(
            &["input x 1 1 4 4", "y = MaxPool(x) {kernel_shape=[2, 2], dilations=[2, 2]}"],
            "f32 [1, 1, 2, 2]",
        );
    }

    #[test]
    fn a_global_pool_leaves_one_place() {
        infers(&["input x n 3 h w", "y = GlobalAveragePool(x)"], "f32 [n, 3, 1, 1]");
        infers(
            &[
                "input x u8 1 5 5 8",
                "weight s",
                "weight z u8",
                "y = com.microsoft.QLinearGlobalAveragePool(x, s, z, s, z) {channels_last=1}",
            ],
            "u8 [1, 1, 1, 8]",
        );
    }

    #[test]
    fn maxima_go_back_to_where_they_were() {
        infers(
            &[
                "input x 1 1 2 2",
                "input i i64 1 1 2 2",
                "y = MaxUnpool(x, i) {kernel_shape=[2, 2], strides=[2, 2]}",
            ],
            "f32 [1, 1, 4, 4]",
        );
        infers(
            &[
                "input x 1 1 2 2",
                "input i i64 1 1 2 2",
                "weight s i64 4 = 1 1 5 5",
                "y = MaxUnpool(x, i, s) {kernel_shape=[2, 2], strides=[2, 2]}",
            ],
            "f32 [1, 1, 5, 5]",
        );
    }

    #[test]
    fn a_pool_without_a_kernel_is_none() {
        misfits(&["input x 1 1 4", "y = MaxPool(x)"], "it has no kernel_shape");
        misfits(
            &["input x 1 1 4", "y = MaxPool(x) {kernel_shape=[2, 2]}"],
            "input 0 has rank 3, wanted 4",
        );
    }
}
