//! [`Value`]: one scalar of a JSON file, as found, so that an error can say what stood where.
//!
//! ~~~text
//! {"id": 3, "name": "x", "bytes": -5}     serde alone:  invalid value: integer `-5`, expected u64
//!                                         with Value:   tensor `x` (t3): bytes is -5; wanted ...
//! ~~~
//! Lists and objects are refused by serde, which names line and column; the one exception is
//! `{"at_most": n}`, a size of which only a bound is known.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// A scalar.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Value {
    /// `null`, or not there.
    #[default]
    Null,
    /// A whole number that fits.
    Whole(u64),
    /// Any other number.
    Real(f64),
    /// A string.
    Text(Box<str>),
    /// `{"at_most": n}`.
    AtMost(u64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Whole(number) => number.fmt(f),
            Self::Real(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::AtMost(number) => write!(f, "{{\"at_most\": {number}}}"),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a string, null or {\"at_most\": number}")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        #[expect(clippy::cast_precision_loss, reason = "a negative number is only shown")]
        let real = number as f64;
        Ok(u64::try_from(number).map_or(Value::Real(real), Value::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Real(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        const FIELD: &str = "at_most";
        let Some(key) = map.next_key::<Box<str>>()? else {
            return Err(A::Error::missing_field(FIELD));
        };
        if &*key != FIELD {
            return Err(A::Error::unknown_field(&key, &[FIELD]));
        }
        let number = map.next_value()?;
        match map.next_key::<Box<str>>()? {
            Some(key) => Err(A::Error::unknown_field(&key, &[])),
            None => Ok(Value::AtMost(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> String {
        serde_json::from_str::<Value>(json)
            .map_or_else(|error| error.to_string(), |value| value.to_string())
    }

    #[test]
    fn scalars_are_shown_as_they_stand_in_the_file() {
        for json in ["null", "7", "-5", "1.5", "\"a\\\"b\"", "{\"at_most\": 9}"] {
            assert_eq!(shown(json), json);
        }
    }

    #[test]
    fn what_is_no_scalar_is_refused_with_its_place() {
        for json in ["[1]", "{}", "{\"x\":1}", "{\"at_most\":1,\"x\":2}", "true"] {
            assert!(shown(json).contains("at line 1 column"), "{json}: {}", shown(json));
        }
    }
}
