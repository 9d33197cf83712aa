//! [`Column`]: a list of a JSON file, turned into rows while it is read.
//!
//! ~~~text
//! "size": [64, null, -1, 64]  ──>  rows 64, unknown     the first misfit: [2] is -1
//! ~~~
//! A misfit does not stop the reader, so that a wrong format or version, which may stand anywhere in the
//! file, is told before it. No memory is set aside by a number in the file: a row costs what its text paid for.

use crate::value::Value;
use lowtide_core::{Align, BufferId, Bytes, OpId, ResidenceId, RunId, Size, SpaceId, TensorId};
use serde::de::{Deserialize, DeserializeOwned, Deserializer, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A row of a column.
pub(crate) trait Cell: Sized {
    /// What stands in the file.
    type Raw: DeserializeOwned;

    /// The row, from what stands at position `index`.
    fn read(raw: Self::Raw, index: usize) -> Result<Self, Misfit>;
}

/// A value that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Where it stands.
    pub(crate) place: String,
    /// What it is.
    pub(crate) found: String,
    /// What it should be.
    pub(crate) wanted: &'static str,
}

/// Rows up to the first misfit.
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    rows: Vec<T>,
    misfit: Option<Misfit>,
}

impl<T> Column<T> {
    /// All rows, or the misfit, at a place below `name`.
    pub(crate) fn rows(self, name: &str) -> Result<Vec<T>, Misfit> {
        match self.misfit {
            Some(misfit) => Err(Misfit { place: format!("{name}{}", misfit.place), ..misfit }),
            None => Ok(self.rows),
        }
    }
}

impl<'de, T: Cell> Deserialize<'de> for Column<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ColumnVisitor(PhantomData))
    }
}

struct ColumnVisitor<T>(PhantomData<fn() -> T>);

impl<'de, T: Cell> Visitor<'de> for ColumnVisitor<T> {
    type Value = Column<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Column<T>, A::Error> {
        let mut column = Column { rows: Vec::new(), misfit: None };
        while let Some(raw) = list.next_element::<T::Raw>()? {
            if column.misfit.is_some() {
                continue;
            }
            match T::read(raw, column.rows.len()) {
                Ok(row) => column.rows.push(row),
                Err(misfit) => column.misfit = Some(misfit),
            }
        }
        Ok(column)
    }
}

/// A row that is one scalar.
pub(crate) trait Scalar: Sized {
    /// What it should be, for people.
    const WANTED: &'static str;

    /// The row, if the value is what it should be.
    fn of(value: &Value) -> Option<Self>;

    /// The row, or a misfit at `place`.
    fn at(place: impl Into<String>, value: &Value) -> Result<Self, Misfit> {
        Self::of(value).ok_or_else(|| Misfit {
            place: place.into(),
            found: value.to_string(),
            wanted: Self::WANTED,
        })
    }
}

impl<T: Scalar> Cell for T {
    type Raw = Value;

    fn read(value: Value, index: usize) -> Result<Self, Misfit> {
        // The place is text, which only a misfit needs.
        Self::of(&value).map_or_else(|| Self::at(format!("[{index}]"), &value), Ok)
    }
}

macro_rules! ids_are_scalars {
    ($($id:ident),*) => {$(
        impl Scalar for $id {
            const WANTED: &'static str = u32::WANTED;

            fn of(value: &Value) -> Option<Self> {
                u32::of(value).map(Self::new)
            }
        }

        impl Scalar for Option<$id> {
            const WANTED: &'static str = "an id (a whole number of 0 to 4294967295) or null";

            fn of(value: &Value) -> Option<Self> {
                if *value == Value::Null { Some(None) } else { $id::of(value).map(Some) }
            }
        }
    )*};
}

ids_are_scalars!(BufferId, OpId, ResidenceId, RunId, SpaceId, TensorId);

impl Scalar for u32 {
    const WANTED: &'static str = "a whole number of 0 to 4294967295";

    fn of(value: &Value) -> Option<Self> {
        let Value::Whole(number) = *value else { return None };
        Self::try_from(number).ok()
    }
}

impl Scalar for Bytes {
    const WANTED: &'static str = "a whole number of bytes of 0 to 18446744073709551615";

    fn of(value: &Value) -> Option<Self> {
        let Value::Whole(number) = *value else { return None };
        Some(Self(number))
    }
}

impl Scalar for Option<Bytes> {
    const WANTED: &'static str = "a whole number of bytes of 0 to 18446744073709551615, or null";

    fn of(value: &Value) -> Option<Self> {
        if *value == Value::Null { Some(None) } else { Bytes::of(value).map(Some) }
    }
}

impl Scalar for Size {
    const WANTED: &'static str =
        "a whole number of bytes of 0 to 18446744073709551615, {\"at_most\": bytes} or null";

    fn of(value: &Value) -> Option<Self> {
        match *value {
            Value::Null => Some(Self::Unknown),
            Value::Whole(bytes) => Some(Self::Fixed(Bytes(bytes))),
            Value::AtMost(bytes) => Some(Self::AtMost(Bytes(bytes))),
            Value::Real(_) | Value::Text(_) => None,
        }
    }
}

impl Scalar for Align {
    const WANTED: &'static str = "a power of two of 1 to 2097152";

    fn of(value: &Value) -> Option<Self> {
        let Value::Whole(number) = *value else { return None };
        Self::new(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: Scalar>(json: &str) -> Result<Vec<T>, String> {
        let column: Column<T> = serde_json::from_str(json).map_err(|error| error.to_string())?;
        column.rows("table.column").map_err(|m| format!("{} is {}", m.place, m.found))
    }

    #[test]
    fn a_misfit_is_named_by_its_place() {
        assert_eq!(read::<u32>("[1, 2, 4294967296]"), Err("table.column[2] is 4294967296".into()));
        assert_eq!(read::<Size>("[null, -1]"), Err("table.column[1] is -1".into()));
        assert_eq!(read::<Align>("[64, 65]"), Err("table.column[1] is 65".into()));
    }

    #[test]
    fn null_is_an_absent_id() {
        assert_eq!(read("[null, 3]"), Ok(vec![None, Some(RunId::new(3))]));
        assert_eq!(read::<RunId>("[null]"), Err("table.column[0] is null".into()));
    }
}
