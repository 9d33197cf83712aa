//! The list of weights among a graph's inputs: a JSON array of strings in, names out.
//!
//! ~~~text
//! metadata_props["weight_inputs"] = ["conv1.weight", "b\u00e9ta"]  ──>  conv1.weight, béta
//! ~~~
//! A file whose weights were stripped says in this way which inputs are none. The reader is strict, takes
//! one pass, and knows no other JSON: one array of strings needs no library.

use crate::LoadError;

/// The key of the list.
pub(crate) const KEY: &str = "weight_inputs";

/// Reads the list.
pub(crate) fn parse(text: &str) -> Result<Vec<String>, LoadError> {
    Parser { text, at: 0 }.list()
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn list(mut self) -> Result<Vec<String>, LoadError> {
        let mut names = Vec::new();
        self.expect('[', "`[`")?;
        self.skip_blanks();
        if self.peek() == Some(']') {
            self.next();
            return self.end(names);
        }
        loop {
            self.expect('"', "a string")?;
            names.push(self.string()?);
            self.skip_blanks();
            match self.peek() {
                Some(',') => self.next(),
                Some(']') => {
                    self.next();
                    return self.end(names);
                }
                _ => return Err(self.error("`,` or `]`")),
            }
        }
    }

    fn end(mut self, names: Vec<String>) -> Result<Vec<String>, LoadError> {
        self.skip_blanks();
        if self.peek().is_some() {
            return Err(self.error("the end"));
        }
        Ok(names)
    }

    /// The rest of a string, its opening quote taken.
    fn string(&mut self) -> Result<String, LoadError> {
        let mut name = String::new();
        loop {
            match self.peek() {
                None | Some('\0'..='\x1f') => return Err(self.error("`\"`")),
                Some('"') => {
                    self.next();
                    return Ok(name);
                }
                Some('\\') => {
                    self.next();
                    name.push(self.escape()?);
                }
                Some(plain) => {
                    self.next();
                    name.push(plain);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, LoadError> {
        let plain = match self.peek() {
            Some(same @ ('"' | '\\' | '/')) => same,
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.next();
                return self.unicode();
            }
            _ => return Err(self.error("an escape")),
        };
        self.next();
        Ok(plain)
    }

    /// Four digits, or two times four for a character beyond the first 65,536.
    fn unicode(&mut self) -> Result<char, LoadError> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first).ok_or_else(|| self.error("the first half of a pair"));
        }
        if !self.text[self.at..].starts_with("\\u") {
            return Err(self.error("the second half of a pair"));
        }
        self.at += 2;
        let second = self.hex()?;
        let low = second.checked_sub(0xdc00).filter(|&low| low < 0x400);
        low.and_then(|low| char::from_u32(0x10000 + ((first - 0xd800) << 10) + low))
            .ok_or_else(|| self.error("the second half of a pair"))
    }

    fn hex(&mut self) -> Result<u32, LoadError> {
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|c| c.to_digit(16));
            value = value * 16 + digit.ok_or_else(|| self.error("a hexadecimal digit"))?;
            self.next();
        }
        Ok(value)
    }

    fn expect(&mut self, wanted: char, name: &'static str) -> Result<(), LoadError> {
        self.skip_blanks();
        if self.peek() != Some(wanted) {
            return Err(self.error(name));
        }
        self.next();
        Ok(())
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.next();
        }
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn next(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn error(&self, wanted: &'static str) -> LoadError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), |c| format!("{c:?}"));
        LoadError::BadWeightInputs { at: self.at, found, wanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fails(text: &str, message: &str) {
        let wanted = format!("metadata `weight_inputs`, {message}");
        assert_eq!(parse(text).unwrap_err().to_string(), wanted);
    }

    #[test]
    fn strings_come_out_in_order() {
        assert_eq!(parse(" [ \"a.b\" ,\n\"c\" ] ").unwrap(), ["a.b", "c"]);
        assert!(parse("[]").unwrap().is_empty());
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(parse(r#"["\"\\\/\b\f\n\r\t"]"#).unwrap(), ["\"\\/\x08\x0c\n\r\t"]);
        assert_eq!(parse(r#"["\u00e9\ud83d\ude00é"]"#).unwrap(), ["é😀é"]);
    }

    #[test]
    fn anything_else_is_an_error_with_its_place() {
        fails("", "byte 0: found the end, wanted `[`");
        fails("{}", "byte 0: found '{', wanted `[`");
        fails("[1]", "byte 1: found '1', wanted a string");
        fails(r#"["a" "b"]"#, "byte 5: found '\"', wanted `,` or `]`");
        fails(r#"["a",]"#, "byte 5: found ']', wanted a string");
        fails(r#"["a"] x"#, "byte 6: found 'x', wanted the end");
        fails(r#"["a"#, "byte 3: found the end, wanted `\"`");
        fails("[\"a\n\"]", "byte 3: found '\\n', wanted `\"`");
    }

    #[test]
    fn broken_escapes_are_errors() {
        fails(r#"["\x"]"#, "byte 3: found 'x', wanted an escape");
        fails(r#"["\u12"]"#, "byte 6: found '\"', wanted a hexadecimal digit");
        fails(r#"["\ude00"]"#, "byte 8: found '\"', wanted the first half of a pair");
        fails(r#"["\ud83d"]"#, "byte 8: found '\"', wanted the second half of a pair");
        fails(r#"["\ud83d\u0041"]"#, "byte 14: found '\"', wanted the second half of a pair");
    }
}
