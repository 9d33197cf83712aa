//! Attention beside a plain calculation in double precision, and by hand.

use crate::kernels::testing::{numbers, refuses, run, runs};
use arbitrary::Unstructured;

/// Sizes of one case: batch, heads of queries and of keys, queries, past and new keys, sizes of heads of keys and values.
type Sizes = [usize; 8];

/// Numbers of a case, small and whole.
struct Case {
    sizes: Sizes,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
}

impl Case {
    fn new(sizes: Sizes, seed: u32) -> Self {
        let [batch, heads, kv_heads, queries, past, keys, size, v_size] = sizes;
        let bytes: Vec<u8> = (0..3).flat_map(|at| (seed + at).to_le_bytes()).collect();
        let mut u = Unstructured::new(&bytes);
        let mut some = |len| numbers(&mut u, len).unwrap().iter().map(|x| x / 8.0).collect();
        let keys = batch * kv_heads * (past + keys);
        Self {
            sizes,
            q: some(batch * heads * queries * size),
            k: some(keys * size),
            v: some(keys * v_size),
        }
    }

    /// The output in the layout of four axes; `hides` says which keys a query does not see.
    fn wanted(&self, hides: impl Fn(usize, usize) -> bool) -> Vec<f64> {
        let [batch, heads, kv_heads, queries, past, keys, size, v_size] = self.sizes;
        let keys = past + keys;
        let mut y = Vec::new();
        for row in 0..batch * heads * queries {
            let (head, query) = (row / queries, row % queries);
            let kv = head / heads * kv_heads + head % heads * kv_heads / heads;
            let score = |key: usize| {
                let at = (kv * keys + key) * size;
                let products = (0..size).map(|i| self.q[row * size + i] * self.k[at + i]);
                let score = products.sum::<f64>() / f64::from(u32::try_from(size).unwrap()).sqrt();
                if hides(query, key) { 0.0 } else { score.exp() }
            };
            let weights: Vec<f64> = (0..keys).map(score).collect();
            let sum: f64 = weights.iter().sum();
            let value = |i: usize| {
                let all = weights.iter().enumerate();
                all.map(|(key, w)| w * self.v[(kv * keys + key) * v_size + i]).sum::<f64>() / sum
            };
            y.extend((0..v_size).map(value));
        }
        y
    }

    /// Rows of keys or values from the past, or the new ones.
    fn rows(&self, all: &[f64], size: usize, is_past: bool) -> Vec<f64> {
        let [_, _, _, _, past, keys, ..] = self.sizes;
        let (start, end) = if is_past { (0, past) } else { (past, past + keys) };
        let heads = all.chunks((past + keys) * size);
        heads.flat_map(|head| head[start * size..end * size].to_vec()).collect()
    }

    /// Lines that declare its inputs, of four axes.
    fn lines(&self) -> Vec<String> {
        let [batch, heads, kv_heads, queries, past, keys, size, v_size] = self.sizes;
        let weight = |name: &str, dims: [usize; 4], values: &[f64]| {
            let [a, b, c, d] = dims;
            let values: Vec<String> = values.iter().map(f64::to_string).collect();
            format!("weight {name} {a} {b} {c} {d} = {}", values.join(" "))
        };
        let of = |rows, size| [batch, kv_heads, rows, size];
        vec![
            weight("q", [batch, heads, queries, size], &self.q),
            weight("k", of(keys, size), &self.rows(&self.k, size, false)),
            weight("v", of(keys, v_size), &self.rows(&self.v, v_size, false)),
            weight("pk", of(past, size), &self.rows(&self.k, size, true)),
            weight("pv", of(past, v_size), &self.rows(&self.v, v_size, true)),
        ]
    }

    #[track_caller]
    fn check(&self, calls: &[&str], hides: impl Fn(usize, usize) -> bool) {
        let lines = self.lines();
        let lines: Vec<&str> =
            lines.iter().map(String::as_str).chain(calls.iter().copied()).collect();
        let text = run(&lines, "y").remove(0);
        let found = text.split_once("] ").map_or("", |row| row.1).split_whitespace();
        let found: Vec<f64> = found.map(|word| word.parse().unwrap()).collect();
        let wanted = self.wanted(hides);
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(&wanted) {
            assert!(
                (found - wanted).abs() <= 1e-5 * (1.0 + wanted.abs()),
                "{found}, wanted {wanted}"
            );
        }
    }
}

#[test]
fn heads_of_queries_share_those_of_keys() {
    for (seed, sizes) in
        [[1, 1, 1, 1, 0, 1, 1, 1], [2, 4, 2, 5, 0, 7, 3, 2], [1, 6, 1, 130, 0, 9, 4, 4]]
            .into_iter()
            .enumerate()
    {
        let case = Case::new(sizes, u32::try_from(seed).unwrap());
        case.check(&["y = Attention(q, k, v)"], |_, _| false);
    }
}

#[test]
fn the_past_comes_first_wanted_again_or_not() {
    let case = Case::new([2, 4, 2, 3, 5, 3, 4, 6], 7);
    let causal = |query, key| key > query + 5;
    case.check(&["y; a; b = Attention(q, k, v, _, pk, pv) {is_causal=1}"], causal);
    case.check(&["y = Attention(q, k, v, _, pk, pv) {is_causal=1}"], causal);
}

#[test]
fn masks_hide_and_so_do_lengths() {
    let case = Case::new([1, 2, 2, 3, 0, 4, 2, 2], 3);
    let mask = "weight m bool 3 3 = 1 0 1 1 1 1 0 1 1";
    let seen = [[true, false, true], [true, true, true], [false, true, true]];
    case.check(&[mask, "y = Attention(q, k, v, m)"], |query, key| {
        seen[query].get(key) != Some(&true)
    });
    case.check(&["weight n i64 1 = 2", "y = Attention(q, k, v, _, _, _, n)"], |_, key| key >= 2);
}

#[test]
fn heads_may_be_folded_into_the_last_axis() {
    runs(
        &[
            "weight q 1 1 2 = 0 0",
            "weight k 1 2 2 = 1 2 3 4",
            "weight v 1 2 4 = 1 2 3 4 3 4 5 6",
            "y = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}",
        ],
        "float32 [1, 1, 4] 2 3 4 5",
    );
}

#[test]
fn without_keys_there_is_nothing_to_mean() {
    runs(
        &[
            "weight q 1 1 1 2 = 1 2",
            "weight k 1 1 0 2 = ",
            "weight v 1 1 0 2 = ",
            "y = Attention(q, k, v)",
        ],
        "float32 [1, 1, 1, 2] 0 0",
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    refuses(
        &["input q 1 3 2 4", "input k 1 2 2 4", "input v 1 2 2 4", "y = Attention(q, k, v)"],
        "operator `Attention (op0)`: queries [1, 3, 2, 4], keys [1, 2, 2, 4] and values [1, 2, 2, 4] do not fit together",
    );
}
