//! Names of dimensions that are expressions in other names.
//!
//! ~~~text
//! past_length + 1    past_length is another dimension, or bound  ──>  one more than it
//! 2*batch            batch is neither                            ──>  a name like any other
//! batch-size         no space around the hyphen, a letter behind ──>  a name like any other
//! ~~~
//! Cost: linear in the text; nesting has a limit.

use crate::expr::Expr;

/// Deeper parentheses are not followed.
const MAX_DEPTH: usize = 16;

/// A text as an expression, where `value` says what each name stands for; `None` if it is no expression, or
/// some name stands for nothing.
pub(crate) fn parse(text: &str, value: &dyn Fn(&str) -> Option<Expr>) -> Option<Expr> {
    let mut reader = Reader { rest: text, value, depth: 0 };
    let sum = reader.sum()?;
    reader.rest.trim().is_empty().then_some(sum)
}

/// The names in a text that is an expression; the text itself if it is none.
pub(crate) fn names(text: &str) -> Vec<String> {
    let found = std::cell::RefCell::new(Vec::new());
    let note = |name: &str| {
        found.borrow_mut().push(name.to_owned());
        Some(Expr::ONE)
    };
    match parse(text, &note) {
        Some(_) => found.into_inner(),
        None => vec![text.to_owned()],
    }
}

struct Reader<'a> {
    rest: &'a str,
    value: &'a dyn Fn(&str) -> Option<Expr>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn next_is(&mut self, mark: char) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(mark);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn sum(&mut self) -> Option<Expr> {
        let mut total = self.product()?;
        loop {
            total = if self.next_is('+') {
                total.add(&self.product()?)?
            } else if self.next_is('-') {
                total.sub(&self.product()?)?
            } else {
                return Some(total);
            };
        }
    }

    fn product(&mut self) -> Option<Expr> {
        let mut total = self.factor()?;
        while self.next_is('*') {
            total = total.mul(&self.factor()?)?;
        }
        Some(total)
    }

    fn factor(&mut self) -> Option<Expr> {
        if self.next_is('(') {
            self.depth += 1;
            let inner = (self.depth <= MAX_DEPTH).then(|| self.sum())??;
            self.depth -= 1;
            return self.next_is(')').then_some(inner);
        }
        let word = self.word();
        match word.starts_with(|c: char| c.is_ascii_digit()) {
            true => word.parse().ok().map(Expr::Known),
            false if word.is_empty() => None,
            false => (self.value)(word),
        }
    }

    /// Letters, digits, and what stands in names; a hyphen only between two letters or digits and a letter.
    fn word(&mut self) -> &'a str {
        let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '/');
        let mut end = 0;
        for (at, c) in self.rest.char_indices() {
            let joins = c == '-'
                && at > 0
                && self.rest[at + 1..].starts_with(|next: char| next.is_alphabetic());
            if !is_inner(c) && !joins {
                break;
            }
            end = at + c.len_utf8();
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, written: Option<&str>) {
        let expr = parse(text, &|name| (name != "nobody").then(|| Expr::name(name)));
        assert_eq!(expr.map(|expr| expr.to_string()).as_deref(), written);
    }

    #[test]
    fn sums_and_products_are_expressions() {
        check("past_sequence_length + 1", Some("past_sequence_length + 1"));
        check("2*batch", Some("2*batch"));
        check(" 2 * (a + b) - a*b", Some("2*a - a*b + 2*b"));
        check("a-1", Some("a - 1"));
    }

    #[test]
    fn anything_else_is_no_expression() {
        for text in
            ["", "a b", "a/b + ", "(a", "a)", "2a", "*", "nobody + 1", "99999999999999999999"]
        {
            check(text, None);
        }
        check(&"(".repeat(100_000), None);
    }

    #[test]
    fn a_hyphen_before_a_letter_is_part_of_the_name() {
        check("batch-size", Some("batch-size"));
        check("batch - size", Some("batch - size"));
    }

    #[test]
    fn names_of_an_expression_are_its_parts() {
        assert_eq!(names("2*(a + b)"), ["a", "b"]);
        assert_eq!(names("a b"), ["a b"]);
    }
}
