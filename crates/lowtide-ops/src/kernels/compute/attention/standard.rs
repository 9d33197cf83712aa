//! `Attention` of the standard domain, versions 23 and 24.
//!
//! ~~~text
//! Q, K, V [batch, heads, rows, size], or [batch, rows, heads * size];  mask;  past K, V;  lengths
//!   ──> Y as Q,  present K, V [batch, heads, past + rows, size],  scores [batch, heads, rows, past + rows]
//! ~~~
//! Where there is a past and the present is wanted, keys and values are read from the present; if it is not wanted,
//! those of one head are joined in the scratch.

use super::cache::Joined;
use super::heads::{BLOCK, Head, Heads, Layout, Scoring, Stage};
use super::mask::Mask;
use crate::kernels::compute::product::{Matrix, WithProducts};
use crate::kernels::facts::{input_dims, unsupported};
use crate::shapes::attention::heads as heads_of;
use crate::shapes::{add, mul, number, whole};
use lowtide_core::DType;
use lowtide_core::operator::{
    Call, Fact, Kernel, KernelError, NoKernel, Operand, Operands, Output,
};

/// The inputs behind queries, keys and values.
const MASK: usize = 3;
const PAST: [usize; 2] = [4, 5];
const LENS: usize = 6;

/// Its scratch: a block of scores, a block of the output, and one head of keys and values that have to be joined.
pub(crate) fn scores(call: &Call<'_>) -> Fact {
    let [_, queries, _] = heads_of(call, 0, "q_num_heads");
    let [_, keys, size] = heads_of(call, 1, "kv_num_heads");
    let [_, _, v_size] = heads_of(call, 2, "kv_num_heads");
    let keys = if call.has(PAST[0]) { add(&call.dim(PAST[0], 2), &keys) } else { keys };
    let most = i64::try_from(BLOCK).unwrap_or(i64::MAX);
    let rows = whole(number(&queries).unwrap_or(most).min(most));
    let block = mul(&rows, &add(&keys, &v_size));
    let joined = mul(&keys, &add(&size, &v_size));
    let all = if joins_in_scratch(call) { add(&block, &joined) } else { block };
    Fact::new(Some(DType::F32), Some(vec![all]))
}

fn is_wanted(call: &Call<'_>, output: usize) -> bool {
    call.op.outputs.get(output).is_some_and(Option::is_some)
}

fn joins_in_scratch(call: &Call<'_>) -> bool {
    call.has(PAST[0]) && !(is_wanted(call, 1) && is_wanted(call, 2))
}

pub(crate) fn attention(call: &Call<'_>, _: &[Option<&Fact>]) -> Result<Box<dyn Kernel>, NoKernel> {
    let types = (0..3).chain(PAST).filter(|&at| call.has(at)).map(|at| call.dtype(at));
    if types.into_iter().any(|dtype| dtype != Some(DType::F32)) {
        return unsupported("other types than float32");
    }
    if call.has(PAST[0]) != call.has(PAST[1]) {
        return Err(NoKernel::Misfit(
            "past keys without past values, or the other way round".into(),
        ));
    }
    let attention = Attention::new(call)?;
    let hidden = attention.heads.hidden_bytes();
    let run = move |operands: &mut Operands<'_>| attention.run(operands);
    Ok(Box::new(WithProducts { run, hidden }))
}

/// What was read off a call.
struct Attention {
    heads: Heads,
    past: usize,
    layouts: [Layout; 3],
    y: Layout,
    scoring: Scoring,
    mask: Mask,
    stage: Stage,
    has_past: bool,
}

/// Heads, rows and size of a head of an input, and where they lie.
fn split(call: &Call<'_>, at: usize, name: &str) -> Result<([usize; 4], Layout), NoKernel> {
    match *input_dims(call, at)?.as_slice() {
        [batch, heads, rows, size] => {
            Ok(([batch, heads, rows, size], Layout::apart(heads, rows, size)))
        }
        [batch, rows, folded] => {
            let heads = usize::try_from(call.int_or(name, 0)).unwrap_or(0);
            if heads == 0 || !folded.is_multiple_of(heads) {
                let text = format!("{name} of {heads} do not divide an axis of {folded}");
                return Err(NoKernel::Misfit(text));
            }
            let size = folded / heads;
            Ok(([batch, heads, rows, size], Layout::folded(heads, rows, size)))
        }
        ref dims => {
            Err(NoKernel::Misfit(format!("input {at} has rank {}, wanted 3 or 4", dims.len())))
        }
    }
}

impl Attention {
    fn new(call: &Call<'_>) -> Result<Self, NoKernel> {
        let (q, q_layout) = split(call, 0, "q_num_heads")?;
        let (k, k_layout) = split(call, 1, "kv_num_heads")?;
        let (v, v_layout) = split(call, 2, "kv_num_heads")?;
        let past = if call.has(PAST[0]) { past_rows(call, k, v)? } else { 0 };
        let fits = q[0] == k[0] && k[..3] == v[..3] && q[3] == k[3];
        if !fits || k[1] == 0 || !q[1].is_multiple_of(k[1]) {
            let text = format!("queries {q:?}, keys {k:?} and values {v:?} do not fit together");
            return Err(NoKernel::Misfit(text));
        }
        let [batch, heads, queries, size] = q;
        let (keys, v_size) = (past + k[2], v[3]);
        let heads = Heads { batch, of_queries: heads, of_keys: k[1], queries, keys, size, v_size };
        let causal = call.flag("is_causal").then_some(past);
        let y = match call.rank(0) {
            Some(3) => Layout::folded(heads.of_queries, queries, v_size),
            _ => Layout::apart(heads.of_queries, queries, v_size),
        };
        Ok(Self {
            mask: Mask::new(call, (MASK, LENS), &heads, causal)?,
            scoring: scoring(call, size),
            stage: stage(call)?,
            has_past: call.has(PAST[0]),
            layouts: [q_layout, k_layout, v_layout],
            past,
            heads,
            y,
        })
    }

    fn run(&self, operands: &mut Operands<'_>) -> Result<(), KernelError> {
        let mask = self.mask.values(operands)?;
        let q = operands.input(0)?.values::<f32>()?;
        let joined = [self.joined(operands, 0)?, self.joined(operands, 1)?];
        let wanted = self.heads.scratch();
        let Operands { outputs, scratch, .. } = operands;
        let (scratch, joining) = floats(scratch, wanted)?.split_at_mut(wanted);
        let mut outputs = outputs.iter_mut();
        let mut next = || outputs.next().and_then(Option::as_mut).map(Output::values_mut::<f32>);
        let mut y = next().transpose()?;
        let present = [next().transpose()?, next().transpose()?];
        let mut shown = next().transpose()?;
        let present = fill(&joined, present);
        for at in 0..self.heads.batch * self.heads.of_queries {
            let (batch, head) = (at / self.heads.of_queries, at % self.heads.of_queries);
            let of_kv = (batch, self.heads.kv_head(head));
            let (of_keys, of_values) = joining.split_at_mut(joined[0].len().min(joining.len()));
            let k = self.matrix(&joined[0], present[0], of_kv, of_keys);
            let v = self.matrix(&joined[1], present[1], of_kv, of_values);
            let shown = shown.as_deref_mut().map(|all| (self.stage, all));
            let y = (self.y, y.as_deref_mut().unwrap_or_default());
            let mut of = Head { q: (self.layouts[0], q), k, v, y, shown, scratch };
            self.heads.attend((batch, head), self.scoring, &mask, &mut of)?;
        }
        Ok(())
    }

    /// Keys (0) or values (1) of a run.
    fn joined<'a>(&self, operands: &Operands<'a>, which: usize) -> Result<Joined<'a>, KernelError> {
        let past = if self.has_past { Some(operands.input(PAST[which])?.values()?) } else { None };
        Ok(Joined {
            past,
            past_rows: self.past,
            current: operands.input(1 + which)?.values()?,
            layout: self.layouts[1 + which],
            heads: self.heads.of_keys,
            rows: self.heads.keys - self.past,
            size: if which == 0 { self.heads.size } else { self.heads.v_size },
        })
    }

    /// One head of keys or values: of the present, of the input, or joined in the scratch.
    fn matrix<'a>(
        &self,
        joined: &Joined<'a>,
        present: Option<&'a [f32]>,
        (batch, head): (usize, usize),
        scratch: &'a mut [f32],
    ) -> Matrix<'a, f32> {
        let (rows, size) = (self.heads.keys, joined.size);
        if let Some(present) = present {
            let layout = Layout::apart(joined.heads, rows, size);
            return layout.matrix(present, (batch, head), (0, rows), size);
        }
        if joined.past.is_none() {
            return joined.layout.matrix(joined.current, (batch, head), (0, rows), size);
        }
        let scratch = &mut scratch[..joined.len()];
        joined.copy((batch, head), scratch);
        Matrix::new(scratch, rows, size)
    }
}

/// Fills the present keys and values that are wanted.
fn fill<'a>(
    joined: &[Joined<'_>; 2],
    [keys, values]: [Option<&'a mut [f32]>; 2],
) -> [Option<&'a [f32]>; 2] {
    let fill = |joined: &Joined<'_>, present: Option<&'a mut [f32]>| {
        let present = present?;
        joined.copy_all(present);
        Some(&*present)
    };
    [fill(&joined[0], keys), fill(&joined[1], values)]
}

fn floats(scratch: &mut [u8], wanted: usize) -> Result<&mut [f32], KernelError> {
    let found = scratch.len();
    let error = KernelError::Bytes { operand: Operand::Scratch, found, wanted: wanted * 4 };
    let whole = found - found % size_of::<f32>();
    let cast = bytemuck::try_cast_slice_mut(&mut scratch[..whole]).ok();
    cast.filter(|cast: &&mut [f32]| cast.len() >= wanted).ok_or(error)
}

/// The rows that were there before.
fn past_rows(call: &Call<'_>, k: [usize; 4], v: [usize; 4]) -> Result<usize, NoKernel> {
    let [keys, values] = [input_dims(call, PAST[0])?, input_dims(call, PAST[1])?];
    let rows = keys.get(2).copied().unwrap_or(0);
    let fits =
        |past: &[usize], [batch, heads, _, size]: [usize; 4]| *past == [batch, heads, rows, size];
    if fits(&keys, k) && fits(&values, v) {
        return Ok(rows);
    }
    let text =
        format!("a past of {keys:?} and {values:?} does not fit keys {k:?} and values {v:?}");
    Err(NoKernel::Misfit(text))
}

fn scoring(call: &Call<'_>, size: usize) -> Scoring {
    #[expect(clippy::cast_precision_loss, reason = "sizes of heads are small")]
    let usual = || (size as f32).sqrt().recip();
    // Both factors are scaled by the root of it, as the operator's text has it, so that a negative one makes no sense.
    let scale = call.float("scale").unwrap_or_else(usual);
    Scoring { scale, softcap: call.float("softcap").unwrap_or(0.0) }
}

fn stage(call: &Call<'_>) -> Result<Stage, NoKernel> {
    match call.int_or("qk_matmul_output_mode", 0) {
        0 => Ok(Stage::Product),
        1 => Ok(Stage::Masked),
        2 => Ok(Stage::Capped),
        3 => Ok(Stage::Weights),
        mode => Err(NoKernel::Misfit(format!("qk_matmul_output_mode is {mode}, wanted 0 to 3"))),
    }
}
