//! The rule of `Einsum`: letters name axes, and an axis of the result is what its letter names.
//!
//! ~~~text
//! bij,bjk->bik    b, i, j, k are dimensions; without an arrow, letters that stand once, in order
//! ...ij,...jk     the dots are axes that are broadcast to each other
//! ~~~

use super::elementwise::broadcast;
use crate::call::{Call, Facts, Misfit, equal};
use crate::fact::Extent;
use std::collections::BTreeMap;

/// One side of the equation: letters before the dots, and after them (`None` without dots).
pub(crate) struct Term {
    pub(crate) before: Vec<char>,
    pub(crate) after: Option<Vec<char>>,
}

/// The equation: a term an input, and that of the result.
pub(crate) struct Equation {
    pub(crate) inputs: Vec<Term>,
    output: Option<Term>,
}

impl Term {
    fn read(text: &str) -> Result<Self, Misfit> {
        let text: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
        let letters = |part: &str| part.chars().collect::<Vec<_>>();
        let term = match text.split_once("...") {
            Some((before, after)) => Self { before: letters(before), after: Some(letters(after)) },
            None => Self { before: letters(&text), after: None },
        };
        let wrong = term.letters().find(|letter| !letter.is_alphabetic());
        match wrong {
            Some(letter) => Err(Misfit(format!("`{letter}` names no axis"))),
            None => Ok(term),
        }
    }

    pub(crate) fn letters(&self) -> impl Iterator<Item = char> + '_ {
        self.before.iter().chain(self.after.iter().flatten()).copied()
    }
}

impl Equation {
    /// Reads the equation of a call.
    pub(crate) fn read(call: &Call<'_>) -> Result<Self, Misfit> {
        let text = call.text("equation").unwrap_or_default();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(Term::read(right)?)),
            None => (text, None),
        };
        let inputs = left.split(',').map(Term::read).collect::<Result<Vec<_>, _>>()?;
        if inputs.len() != call.inputs.len() {
            let (terms, found) = (inputs.len(), call.inputs.len());
            return Err(Misfit(format!("`{text}` has {terms} terms for {found} inputs")));
        }
        Ok(Self { inputs, output: right })
    }

    /// The result's letters: as stated, or those that stand once, in order.
    pub(crate) fn result(&self) -> (Vec<char>, Option<Vec<char>>) {
        if let Some(term) = &self.output {
            return (term.before.clone(), term.after.clone());
        }
        let mut counts: BTreeMap<char, usize> = BTreeMap::new();
        self.inputs.iter().flat_map(Term::letters).for_each(|c| *counts.entry(c).or_insert(0) += 1);
        let once = counts.into_iter().filter(|row| row.1 == 1).map(|row| row.0).collect();
        let has_dots = self.inputs.iter().any(|term| term.after.is_some());
        if has_dots { (Vec::new(), Some(once)) } else { (once, None) }
    }
}

/// What the letters and the dots stand for.
pub(crate) struct Axes {
    pub(crate) letters: BTreeMap<char, Extent>,
    pub(crate) dots: Option<Vec<Extent>>,
}

/// The axes of an equation; those of inputs without shape are not known.
pub(crate) fn axes(call: &Call<'_>, equation: &Equation) -> Result<Axes, Misfit> {
    let mut axes = Axes { letters: BTreeMap::new(), dots: Some(Vec::new()) };
    for (at, term) in equation.inputs.iter().enumerate() {
        let Some(dims) = call.dims(at) else {
            axes.dots = axes.dots.filter(|_| term.after.is_none());
            continue;
        };
        let after = term.after.as_deref().unwrap_or_default();
        let named = term.before.len() + after.len();
        if named > dims.len() || (term.after.is_none() && named != dims.len()) {
            return Err(Misfit(format!("{named} letters for input {at} of rank {}", dims.len())));
        }
        let (head, rest) = dims.split_at(term.before.len());
        let (dots, tail) = rest.split_at(rest.len() - after.len());
        for (&letter, dim) in term.before.iter().zip(head).chain(after.iter().zip(tail)) {
            let old = axes.letters.entry(letter).or_insert(None);
            *old = same(old, dim, letter)?;
        }
        if let Some(known) = axes.dots.take() {
            axes.dots = Some(broadcast(&known, dots)?);
        }
    }
    Ok(axes)
}

/// A dimension of 1 is broadcast.
fn same(a: &Extent, b: &Extent, letter: char) -> Result<Extent, Misfit> {
    match (super::number(a), super::number(b)) {
        (Some(1), Some(_)) => Ok(b.clone()),
        (Some(_), Some(1)) => Ok(a.clone()),
        _ => equal(a, b, &format!("axes `{letter}`")),
    }
}

pub(crate) fn einsum(call: &Call<'_>) -> Facts {
    let equation = Equation::read(call)?;
    let axes = axes(call, &equation)?;
    let (before, after) = equation.result();
    let pick = |letter: &char| axes.letters.get(letter).cloned().flatten();
    let mut dims: Vec<Extent> = before.iter().map(pick).collect();
    if let Some(after) = &after {
        let Some(dots) = &axes.dots else { return Ok(vec![call.typed(0, None)]) };
        dims.extend(dots.iter().cloned());
        dims.extend(after.iter().map(pick));
    }
    Ok(vec![call.typed(0, Some(dims))])
}

#[cfg(test)]
mod tests {
    use crate::testing::{infers, misfits};

    #[test]
    fn letters_name_axes() {
        infers(
            &["input a b 4 5", "input c b 5 n", "y = Einsum(a, c) {equation=bij,bjk->bik}"],
            "f32 [b, 4, n]",
        );

        infers(&["input a 4 5", "y = Einsum(a) {equation=ij->ji}"], "f32 [5, 4]");
    }

    #[test]
    fn without_an_arrow_those_remain_that_stand_once() {
        infers(&["input a 4 5", "input b 5 6", "y = Einsum(a, b) {equation=ij,jk}"], "f32 [4, 6]");
        infers(&["input a 3 3", "y = Einsum(a) {equation=ii->}"], "f32 []");
    }

    #[test]
    fn dots_are_broadcast() {
        infers(
            &["input a n 2 4 5", "input b 1 5 6", "y = Einsum(a, b) {equation=...ij,...jk->...ik}"],
            "f32 [n, 2, 4, 6]",
        );
    }

    #[test]
    fn terms_and_inputs_agree() {
        misfits(
            &["input a 4 5", "y = Einsum(a) {equation=ij,jk}"],
            "`ij,jk` has 2 terms for 1 inputs",
        );
        misfits(
            &["input a 4 5", "input b 6 7", "y = Einsum(a, b) {equation=ij,jk}"],
            "axes `j`: 5 and 6 should be equal",
        );
        misfits(
            &["input a 4 5", "y = Einsum(a) {equation=ijk}"],
            "3 letters for input 0 of rank 2",
        );
    }
}
