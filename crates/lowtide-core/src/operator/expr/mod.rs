//! [`Expr`]: whole numbers that may depend on named dimensions.
//!
//! ~~~text
//! 2 * batch * seq + 3         a sum of products of atoms, each with a factor, in one fixed order:
//!  |    |      |    |         two expressions are equal if they are written equal
//!  factor  atoms    no atoms
//! atom: a name, or floor(a / b), a % b, max(a, b), min(a, b), broadcast(a, b) of expressions
//! ~~~
//! Arithmetic is checked: what overflows, or grows beyond `MAX_WEIGHT` atoms, is not known (`None`). Names stand
//! for numbers that are 0 or more. Cost of an operation: proportional to the product of the weights.

mod bounds;
mod broadcast;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

/// Atoms in an expression, those inside atoms included; more is not worth carrying.
const MAX_WEIGHT: usize = 64;

/// A whole number that may depend on names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expr {
    /// A number.
    Known(i64),
    /// Not a number: at least one atom has a factor other than 0.
    Open(Arc<Sum>),
}

/// Factors of products of atoms; the empty product is 1.
type Terms = BTreeMap<Vec<Atom>, i64>;

/// A sum of products of names and of operations that are not sums or products.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sum {
    terms: Terms,
    weight: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Atom {
    Name(Arc<str>),
    Quotient(Expr, Expr),
    Remainder(Expr, Expr),
    Max(Expr, Expr),
    Min(Expr, Expr),
    /// The second one where the first one is 1, else the first one; both are equal where neither is 1.
    Broadcast(Expr, Expr),
}

impl Expr {
    /// Nothing.
    pub const ZERO: Self = Self::Known(0);
    /// One.
    pub const ONE: Self = Self::Known(1);

    /// The number that a name stands for.
    pub fn name(name: &str) -> Self {
        Self::atom(Atom::Name(name.into())).expect("one name is not too much")
    }

    /// The number, if it is one.
    pub fn known(&self) -> Option<i64> {
        match self {
            Self::Known(value) => Some(*value),
            Self::Open(_) => None,
        }
    }

    /// The sum.
    pub fn add(&self, other: &Self) -> Option<Self> {
        let mut terms = self.terms();
        for (product, factor) in other.terms() {
            let sum = terms.entry(product).or_insert(0);
            *sum = sum.checked_add(factor)?;
        }
        Self::of(terms)
    }

    /// The difference.
    pub fn sub(&self, other: &Self) -> Option<Self> {
        self.add(&other.mul(&Self::Known(-1))?)
    }

    /// The product.
    pub fn mul(&self, other: &Self) -> Option<Self> {
        let mut terms = Terms::new();
        for (left, a) in &self.terms() {
            for (right, b) in &other.terms() {
                let mut product = [left.as_slice(), right].concat();
                product.sort();
                let sum = terms.entry(product).or_insert(0);
                *sum = sum.checked_add(a.checked_mul(*b)?)?;
            }
        }
        Self::of(terms)
    }

    /// The quotient, rounded down.
    pub fn div(&self, other: &Self) -> Option<Self> {
        if let (Some(a), Some(b)) = (self.known(), other.known()) {
            return floor_div(a, b).map(Self::Known);
        }
        if let Some(exact) = self.div_exactly(other) {
            return Some(exact);
        }
        match other.known() {
            Some(by) if by > 0 => self.div_by(by),
            Some(0) => None,
            _ => Self::pair(Atom::Quotient, self, other),
        }
    }

    /// Division by a number above 0. What it divides is taken out, so that (h - 1)/2 + 1 is (h + 1)/2; a
    /// quotient of a quotient is one quotient.
    fn div_by(&self, by: i64) -> Option<Self> {
        let (mut taken, mut rest) = (Terms::new(), Terms::new());
        for (product, factor) in self.terms() {
            let left = factor.rem_euclid(by);
            if product.is_empty() || left == 0 {
                taken.insert(product.clone(), factor.div_euclid(by));
                rest.insert(product, left);
            } else {
                rest.insert(product, factor);
            }
        }
        let (taken, rest) = (Self::of(taken)?, Self::of(rest)?);
        let quotient = match rest.quotient_and_number() {
            Some((above, below, number)) => {
                let above = above.add(&Self::Known(number.checked_mul(below)?))?;
                above.div(&Self::Known(below.checked_mul(by)?))?
            }
            None if rest.known().is_some() => Self::Known(rest.known()?.div_euclid(by)),
            None => Self::pair(Atom::Quotient, &rest, &Self::Known(by))?,
        };
        taken.add(&quotient)
    }

    /// The parts of `floor(above / below) + number`, if this is one, and `below` a number above 0.
    fn quotient_and_number(&self) -> Option<(Self, i64, i64)> {
        let mut number = 0;
        let mut found = None;
        for (product, factor) in self.terms() {
            match (product.as_slice(), factor) {
                ([], factor) => number = factor,
                ([Atom::Quotient(above, Self::Known(below))], 1)
                    if found.is_none() && *below > 0 =>
                {
                    found = Some((above.clone(), *below));
                }
                _ => return None,
            }
        }
        found.map(|(above, below)| (above, below, number))
    }

    /// The quotient, rounded up.
    pub fn div_up(&self, other: &Self) -> Option<Self> {
        match other.known() {
            Some(by) if by > 0 => self.add(&Self::Known(by - 1))?.div(other),
            _ => Self::ZERO.sub(&Self::ZERO.sub(self)?.div(other)?),
        }
    }

    /// The quotient, if it is one whatever the names stand for (a divisor that is 0 left aside).
    pub fn div_exactly(&self, other: &Self) -> Option<Self> {
        if self == other {
            return (other.known() != Some(0)).then_some(Self::ONE);
        }
        let divisor = other.terms();
        let (atoms, &by) = divisor.iter().next().filter(|_| divisor.len() == 1)?;
        let mut terms = Terms::new();
        for (product, factor) in self.terms() {
            let mut rest = product;
            for atom in atoms {
                let at = rest.iter().position(|other| other == atom)?;
                rest.remove(at);
            }
            (factor.checked_rem(by)? == 0).then(|| terms.insert(rest, factor / by))?;
        }
        Self::of(terms)
    }

    /// The remainder of the quotient that is rounded down.
    pub fn rem(&self, other: &Self) -> Option<Self> {
        if let (Some(a), Some(b)) = (self.known(), other.known()) {
            return a.checked_sub(floor_div(a, b)?.checked_mul(b)?).map(Self::Known);
        }
        if self.div_exactly(other).is_some() {
            return Some(Self::ZERO);
        }
        (other.known() != Some(0)).then(|| Self::pair(Atom::Remainder, self, other))?
    }

    /// The larger one of the two.
    pub fn larger(&self, other: &Self) -> Option<Self> {
        if self.is_at_least(other) {
            return Some(self.clone());
        }
        if other.is_at_least(self) {
            return Some(other.clone());
        }
        Self::pair(Atom::Max, self.min_by_form(other), self.max_by_form(other))
    }

    /// The smaller one of the two.
    pub fn smaller(&self, other: &Self) -> Option<Self> {
        if self.is_at_least(other) {
            return Some(other.clone());
        }
        if other.is_at_least(self) {
            return Some(self.clone());
        }
        Self::pair(Atom::Min, self.min_by_form(other), self.max_by_form(other))
    }

    fn min_by_form<'a>(&'a self, other: &'a Self) -> &'a Self {
        if self <= other { self } else { other }
    }

    fn max_by_form<'a>(&'a self, other: &'a Self) -> &'a Self {
        if self <= other { other } else { self }
    }

    /// The value when each name stands for a number; `None` if some name does not, or on overflow.
    pub fn eval(&self, names: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let Self::Open(sum) = self else { return self.known() };
        let value = |(product, &factor): (&Vec<Atom>, &i64)| {
            product.iter().try_fold(factor, |value, atom| value.checked_mul(atom.eval(names)?))
        };
        sum.terms.iter().try_fold(0_i64, |total, term| total.checked_add(value(term)?))
    }

    fn terms(&self) -> Terms {
        match self {
            Self::Known(0) => Terms::new(),
            Self::Known(value) => Terms::from([(Vec::new(), *value)]),
            Self::Open(sum) => sum.terms.clone(),
        }
    }

    fn of(mut terms: Terms) -> Option<Self> {
        terms.retain(|_, factor| *factor != 0);
        let constant = terms.get([].as_slice()).copied().unwrap_or(0);
        if terms.keys().all(Vec::is_empty) {
            return Some(Self::Known(constant));
        }
        let weight = terms.len() + terms.keys().flatten().map(Atom::weight).sum::<usize>();
        (weight <= MAX_WEIGHT).then(|| Self::Open(Arc::new(Sum { terms, weight })))
    }

    fn atom(atom: Atom) -> Option<Self> {
        Self::of(Terms::from([(vec![atom], 1)]))
    }

    fn pair(make: fn(Self, Self) -> Atom, a: &Self, b: &Self) -> Option<Self> {
        Self::atom(make(a.clone(), b.clone()))
    }

    fn weight(&self) -> usize {
        match self {
            Self::Known(_) => 1,
            Self::Open(sum) => sum.weight,
        }
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    let is_inexact = a.checked_rem(b)? != 0;
    Some(if is_inexact && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

impl Atom {
    fn weight(&self) -> usize {
        match self {
            Self::Name(_) => 1,
            Self::Quotient(a, b)
            | Self::Remainder(a, b)
            | Self::Max(a, b)
            | Self::Min(a, b)
            | Self::Broadcast(a, b) => 1 + a.weight() + b.weight(),
        }
    }

    fn eval(&self, names: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
        let both = |a: &Expr, b: &Expr| Some((a.eval(names)?, b.eval(names)?));
        match self {
            Self::Name(name) => names(name),
            Self::Quotient(a, b) => both(a, b).and_then(|(a, b)| floor_div(a, b)),
            Self::Remainder(a, b) => {
                let (a, b) = both(a, b)?;
                a.checked_sub(floor_div(a, b)?.checked_mul(b)?)
            }
            Self::Max(a, b) => both(a, b).map(|(a, b)| a.max(b)),
            Self::Min(a, b) => both(a, b).map(|(a, b)| a.min(b)),
            Self::Broadcast(a, b) => both(a, b).map(|(a, b)| if a == 1 { b } else { a }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arbitrary::Unstructured;

    fn n(value: i64) -> Expr {
        Expr::Known(value)
    }

    #[test]
    fn equal_sums_are_written_equal() {
        let (a, b) = (Expr::name("a"), Expr::name("b"));
        let left = a.add(&b).unwrap().mul(&n(2)).unwrap();
        let right = b.mul(&n(2)).unwrap().add(&a).unwrap().add(&a).unwrap();
        assert_eq!(left, right);
        assert_eq!(left.add(&n(-3)).unwrap().to_string(), "2*a + 2*b - 3");
        assert_eq!(a.sub(&a), Some(n(0)));
    }

    #[test]
    fn quotients_that_are_exact_have_no_rounding() {
        let (a, b) = (Expr::name("a"), Expr::name("b"));
        let product = a.mul(&b).unwrap().mul(&n(12)).unwrap();
        assert_eq!(product.div(&a.mul(&n(4)).unwrap()).unwrap().to_string(), "3*b");
        assert_eq!(a.div(&n(2)).unwrap().to_string(), "floor(a/2)");
        assert_eq!(a.div_up(&n(2)).unwrap().eval(&|_| Some(5)), Some(3));
        assert_eq!((n(7).div(&n(0)), n(-7).div(&n(2))), (None, Some(n(-4))));
    }

    #[test]
    fn comparisons_hold_whatever_the_names_stand_for() {
        let a = Expr::name("a");
        let more = a.add(&n(1)).unwrap();
        assert_eq!(more.larger(&a).as_ref(), Some(&more));
        assert_eq!((a.larger(&n(0)), a.smaller(&n(-2))), (Some(a.clone()), Some(n(-2))));
        assert_eq!(a.larger(&n(1)).unwrap().to_string(), "max(1, a)");
        assert!(!a.is_at_least(&n(1)));
    }

    #[test]
    fn bounds_of_names_bound_expressions() {
        let a = Expr::name("a");
        let most = |expr: &Expr| expr.most(&|_| Some(10));
        assert_eq!(most(&a.mul(&n(3)).unwrap().add(&n(2)).unwrap()), Some(32));
        assert_eq!(most(&n(5).sub(&a).unwrap()), Some(5));
        assert_eq!(most(&a.div(&n(4)).unwrap()), Some(2));
        assert_eq!(most(&a.smaller(&n(7)).unwrap()), Some(7));
        assert_eq!(a.most(&|_| None), None);
    }

    #[test]
    fn what_overflows_is_not_known() {
        assert_eq!(n(i64::MAX).add(&n(1)), None);
        assert_eq!(n(i64::MAX).mul(&n(2)), None);
        assert_eq!(n(i64::MIN).div(&n(-1)), None);
    }

    /// A random expression in `a` and `b`, and its value where a = 3 and b = 5.
    fn random(u: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<Option<(Expr, i64)>> {
        if depth == 0 || u.ratio(1, 4)? {
            let number = u.int_in_range(-4..=9)?;
            let leaves = [(Expr::name("a"), 3), (Expr::name("b"), 5), (n(number), number)];
            return Ok(Some(u.choose(&leaves)?.clone()));
        }
        let (left, right) = (random(u, depth - 1)?, random(u, depth - 1)?);
        let Some(((left, x), (right, y))) = left.zip(right) else { return Ok(None) };
        let (expr, value) = match u.int_in_range(0..=6)? {
            0 => (left.add(&right), x.checked_add(y)),
            1 => (left.sub(&right), x.checked_sub(y)),
            2 => (left.mul(&right), x.checked_mul(y)),
            3 => (left.div(&right), floor_div(x, y)),
            4 => (left.rem(&right), floor_div(x, y).map(|q| x - q * y)),
            5 => (left.larger(&right), Some(x.max(y))),
            _ => (left.smaller(&right), Some(x.min(y))),
        };
        Ok(expr.zip(value))
    }

    #[test]
    fn substituting_numbers_is_calculating_with_numbers() {
        arbtest::arbtest(|u| {
            let Some((expr, value)) = random(u, 4)? else { return Ok(()) };
            let names = |name: &str| Some(if name == "a" { 3 } else { 5 });
            assert_eq!(expr.eval(&names), Some(value), "{expr}");
            if let Some(most) = expr.most(&names) {
                assert!(most >= value, "{expr} is {value}, at most {most}");
            }
            Ok(())
        })
        .budget_ms(500);
    }
}
