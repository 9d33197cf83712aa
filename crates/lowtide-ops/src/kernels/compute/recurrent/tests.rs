//! Small layers by hand, and random ones against loops that follow the text of the operators word by word.

use crate::kernels::testing::{fails, refuses, run, runs};
use arbitrary::{Result, Unstructured};

/// For each property; most of a case is the making of the model.
const BUDGET: u64 = 1000;

const W: &str = "weight w 1 1 1 = 1";
const R: &str = "weight r 1 1 1 = 10";

#[test]
fn a_state_is_carried_from_step_to_step() {
    let rnn = "y = RNN(x, w, r) {activations=[Relu], hidden_size=1}";
    runs(&["weight x 3 1 1 = 1 2 3", W, R, rnn], "float32 [3, 1, 1, 1] 1 12 123");
    let rnn = "y = RNN(x, w, r) {activations=[Relu], direction=reverse}";
    runs(&["weight x 3 1 1 = 1 2 3", W, R, rnn], "float32 [3, 1, 1, 1] 321 32 3");
}

#[test]
fn a_layer_may_be_in_double_precision() {
    let lines = ["weight x f64 2 1 1 = 1 2", "weight w f64 1 1 1 = 1", "weight r f64 1 1 1 = 10"];
    let bias = "weight b f64 1 2 = 1 1";
    let rnn = "y = RNN(x, w, r, b) {activations=[Relu]}";
    runs(&[&lines[..], &[bias, rnn]].concat(), "float64 [2, 1, 1, 1] 3 34");
}

#[test]
fn shorter_sequences_end_earlier() {
    let lines = ["weight x 2 3 1 = 1 2 3 4 5 6", W, R, "weight n i32 3 = 2 1 0"];
    let h = "weight h 1 3 1 = 1 1 1";
    let rnn = "y; l = RNN(x, w, r, _, n, h) {activations=[Relu]}";
    let wanted = ["float32 [2, 1, 3, 1] 11 12 0 114 0 0", "float32 [1, 3, 1] 114 12 0"];
    assert_eq!(run(&[&lines[..], &[h, rnn]].concat(), "y l"), wanted);
    let rnn = "y; l = RNN(x, w, r, _, n, h) {activations=[Relu], direction=reverse}";
    let wanted = ["float32 [2, 1, 3, 1] 141 12 0 14 0 0", "float32 [1, 3, 1] 141 12 0"];
    assert_eq!(run(&[&lines[..], &[h, rnn]].concat(), "y l"), wanted);
}

#[test]
fn a_sequence_is_no_longer_than_there_are_steps() {
    let lines = ["weight x 2 1 1 = 1 2", W, R, "weight n i32 1 = 3", "y = RNN(x, w, r, _, n)"];
    fails(&lines, "a sequence of 3 steps, wanted 0 to 2");
}

#[test]
fn what_is_known_to_be_wrong_is_refused() {
    let lines = ["input x 2 1 1", "input w 1 1 1", "input r 1 1 1"];
    let refused = |call: &str, why: &str| {
        let wanted = format!("1 operators have no kernel: 1 x RNN ({why})");
        refuses(&[&lines[..], &[call]].concat(), &wanted);
    };
    refused("y = RNN(x, w, r) {activations=[Sine]}", "the activation Sine");
}

#[test]
fn bytes_are_weights_with_a_scale() {
    let lines = [
        "weight x 1 1 1 = 1",
        "weight w i8 1 1 4 = 2 2 2 2",
        "weight r i8 1 1 4 = 1 1 1 1",
        "weight s 1 = 0.5",
        "weight z i8 1 = 0",
        "y = com.microsoft.DynamicQuantizeLSTM(x, w, r, _, _, _, _, _, s, z, s, z) {activations=[Relu, Relu, Relu]}",
    ];
    runs(&lines, "float32 [1, 1, 1, 1] 1");
}

/// A layer of random sizes, with all that it may have, its numbers in ONNX's order.
#[derive(Debug)]
struct Case {
    kind: &'static str,
    gates: usize,
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
    is_backward: bool,
    is_batch_first: bool,
    is_late: bool,
    inputs: Vec<Vec<f64>>,
    lens: Vec<usize>,
}

impl Case {
    fn random(u: &mut Unstructured<'_>) -> Result<Self> {
        let (kind, gates) = *u.choose(&[("RNN", 1), ("GRU", 3), ("LSTM", 4)])?;
        let (steps, batch) = (u.int_in_range(0..=9)?, u.int_in_range(1..=6)?);
        let (input, hidden) = (u.int_in_range(0..=5)?, u.int_in_range(1..=5)?);
        let (rows, state) = (gates * hidden, batch * hidden);
        let sizes = [
            steps * batch * input,
            rows * input,
            rows * hidden,
            2 * rows,
            state,
            state,
            3 * hidden,
        ];
        let mut state: u32 = u.arbitrary()?;
        let mut number = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 20) / 2048.0 - 1.0
        };
        let inputs = sizes.map(|size| (0..size).map(|_| number()).collect()).to_vec();
        let lens = (0..batch).map(|_| u.int_in_range(0..=steps)).collect::<Result<_>>()?;
        let (is_backward, is_batch_first) = (u.arbitrary()?, u.arbitrary()?);
        let is_late = u.arbitrary()?;
        Ok(Self {
            kind,
            gates,
            steps,
            batch,
            input,
            hidden,
            is_backward,
            is_batch_first,
            is_late,
            inputs,
            lens,
        })
    }

    fn lines(&self, dtype: &str) -> Vec<String> {
        let Self { kind, gates, steps, batch, input, hidden, .. } = *self;
        let (outer, inner) = if self.is_batch_first { (batch, steps) } else { (steps, batch) };
        let rows = gates * hidden;
        let state = if self.is_batch_first {
            format!("{batch} 1 {hidden}")
        } else {
            format!("1 {batch} {hidden}")
        };
        let dims = [
            format!("{outer} {inner} {input}"),
            format!("1 {rows} {input}"),
            format!("1 {rows} {hidden}"),
            format!("1 {}", 2 * rows),
            state.clone(),
            state,
            format!("1 {}", 3 * hidden),
        ];
        let words =
            |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
        let used = if kind == "LSTM" { 7 } else { 5 };
        let weights = ["x", "w", "r", "b", "h", "c", "p"].iter().zip(&dims).zip(&self.inputs);
        let mut lines: Vec<String> = weights
            .take(used)
            .map(|((name, dims), values)| {
                format!("weight {name} {dtype} {dims} = {}", words(values))
            })
            .collect();
        let lens: Vec<String> = self.lens.iter().map(usize::to_string).collect();
        lines.push(format!("weight n i32 {batch} = {}", lens.join(" ")));
        let direction = if self.is_backward { "reverse" } else { "forward" };
        let more = if kind == "LSTM" { ", c, p" } else { "" };
        let results = if kind == "LSTM" { "y; l; m" } else { "y; l" };
        lines.push(format!(
            "{results} = {kind}(x, w, r, b, n, h{more}) {{direction={direction}, layout={}, linear_before_reset={}}}",
            u8::from(self.is_batch_first), u8::from(self.is_late),
        ));
        lines
    }

    /// One sequence; all states of it, in the order of time, and the last one.
    fn sequence(&self, row: usize) -> (Vec<Vec<f64>>, Vec<f64>, Vec<f64>) {
        let Self { steps, batch, input, hidden, .. } = *self;
        let of_row = |at: usize| self.inputs[at][row * hidden..][..hidden].to_vec();
        let (mut h, mut c) = (of_row(4), of_row(5));
        let mut y = vec![vec![0.0; hidden]; steps];
        let len = self.lens[row];
        for at in 0..len {
            let time = if self.is_backward { len - 1 - at } else { at };
            let place = if self.is_batch_first { row * steps + time } else { time * batch + row };
            let x = &self.inputs[0][place * input..][..input];
            (h, c) = self.step(x, &h, &c);
            y[time].clone_from(&h);
        }
        if len == 0 {
            (h, c) = (vec![0.0; hidden], vec![0.0; hidden]);
        }
        (y, h, c)
    }

    /// `x w + wb` and `h r + rb` of one gate.
    fn sums(&self, gate: usize, unit: usize, x: &[f64], h: &[f64]) -> (f64, f64) {
        let Self { gates, input, hidden, .. } = *self;
        let row = gate * hidden + unit;
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (w, r) = (&self.inputs[1][row * input..], &self.inputs[2][row * hidden..]);
        let (wb, rb) = (self.inputs[3][row], self.inputs[3][gates * hidden + row]);
        (dot(x, w) + wb, dot(h, r) + rb)
    }

    fn step(&self, x: &[f64], h: &[f64], c: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let hidden = self.hidden;
        let both = |gate, unit, h: &[f64]| {
            let (x, h) = self.sums(gate, unit, x, h);
            x + h
        };
        let reset: Vec<f64> = match self.kind {
            "GRU" => (0..hidden).map(|unit| sigmoid(both(1, unit, h)) * h[unit]).collect(),
            _ => Vec::new(),
        };
        let next = (0..hidden).map(|unit| match self.kind {
            "RNN" => (both(0, unit, h).tanh(), 0.0),
            "GRU" => {
                let z = sigmoid(both(0, unit, h));
                let (of_x, of_h) = self.sums(2, unit, x, h);
                let late = of_x + sigmoid(both(1, unit, h)) * of_h;
                let new = if self.is_late { late } else { both(2, unit, &reset) };
                ((1.0 - z) * new.tanh() + z * h[unit], 0.0)
            }
            _ => {
                let p = |gate: usize| self.inputs[6][gate * hidden + unit];
                let i = sigmoid(both(0, unit, h) + p(0) * c[unit]);
                let f = sigmoid(both(2, unit, h) + p(2) * c[unit]);
                let cell = f * c[unit] + i * both(3, unit, h).tanh();
                let o = sigmoid(both(1, unit, h) + p(1) * cell);
                (o * cell.tanh(), cell)
            }
        });
        next.unzip()
    }
}

fn elements(text: &str) -> Vec<f64> {
    let words = text.split_once("] ").map_or("", |pair| pair.1).split_whitespace();
    words.map(|word| word.parse().unwrap()).collect()
}

#[track_caller]
fn assert_near(found: &[f64], wanted: &[f64], case: &Case) {
    assert_eq!(found.len(), wanted.len(), "{case:?}");
    let is_near = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4);
    assert!(is_near, "{found:?}, wanted {wanted:?}: {case:?}");
}

#[test]
fn layers_are_what_the_text_of_their_operators_says() {
    arbtest::arbtest(|u| {
        let case = Case::random(u)?;
        let dtype = *u.choose(&["f32", "f64"])?;
        let lines = case.lines(dtype);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let names = if case.kind == "LSTM" { "y l m" } else { "y l" };
        let found = run(&lines, names);
        let rows: Vec<_> = (0..case.batch).map(|row| case.sequence(row)).collect();
        let y: Vec<f64> = if case.is_batch_first {
            rows.iter().flat_map(|row| row.0.concat()).collect()
        } else {
            (0..case.steps)
                .flat_map(|at| rows.iter().flat_map(move |row| row.0[at].clone()))
                .collect()
        };
        let wanted = [
            y,
            rows.iter().flat_map(|row| row.1.clone()).collect(),
            rows.iter().flat_map(|row| row.2.clone()).collect(),
        ];
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_near(&elements(found), wanted, &case);
        }
        Ok(())
    })
    .budget_ms(BUDGET);
}
