//! Typed ids and the tables that they index.
//!
//! An id is a `u32` with a name: `OpId` cannot index a table of tensors. Absent is `Option<Id>`,
//! never a special number; `Option<Id>` is as small as two words of the id.
//!
//! ~~~text
//! IndexVec<OpId, Op>           op0 | op1 | op2        one row an id
//! Lists<OpId, TensorId>        op0: t0 t3 | op1: | op2: t3     a list an id, in one flat vector
//! ~~~
//! Both hold at most `u32::MAX` rows; readers of files refuse more before they fill a table.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut, Range};

/// A key of an [`IndexVec`].
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// The id of row `index`.
    ///
    /// # Panics
    /// If `index` exceeds `u32::MAX`.
    fn from_index(index: usize) -> Self;
    /// The row this id names.
    fn index(self) -> usize;
}

macro_rules! define_ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The id with this number; meaningful only for the graph or plan that it came from.
            pub const fn new(raw: u32) -> Self {
                Self(raw)
            }
            /// The number itself, as files carry it.
            pub const fn raw(self) -> u32 {
                self.0
            }
        }

        impl Id for $name {
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("a table holds at most u32::MAX rows"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", $prefix, self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    )*};
}

define_ids! {
    /// An operator of a graph.
    OpId = "op";
    /// A tensor of a graph.
    TensorId = "t";
    /// A graph of a model: the main one, or the body of a control-flow operator.
    GraphId = "g";
    /// One execution of an operator; its number is its [`Step`](crate::Step).
    RunId = "run ";
    /// One stay of one value in memory.
    ResidenceId = "r";
    /// A piece of memory that is placed as a whole.
    BufferId = "b";
    /// A memory: the arena, the pool, later a fast and a slow one.
    SpaceId = "space";
}

/// A vector whose rows are named by `I`.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexVec<I, T> {
    rows: Vec<T>,
    key: PhantomData<fn(I)>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// An empty table.
    pub const fn new() -> Self {
        Self { rows: Vec::new(), key: PhantomData }
    }

    /// A table of `len` equal rows.
    pub fn filled(len: usize, row: T) -> Self
    where
        T: Clone,
    {
        Self::from(vec![row; len])
    }

    /// Appends a row and returns its id.
    pub fn push(&mut self, row: T) -> I {
        let id = I::from_index(self.rows.len());
        self.rows.push(row);
        id
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of an id that may come from outside.
    pub fn get(&self, id: I) -> Option<&T> {
        self.rows.get(id.index())
    }

    /// All ids, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.rows.len()).map(I::from_index)
    }

    /// All rows, by ascending id.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.rows.iter()
    }

    /// All ids with their rows.
    pub fn iter_enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.rows.iter().enumerate().map(|(index, row)| (I::from_index(index), row))
    }

    /// The rows as a slice, for sorting and for output.
    pub fn as_slice(&self) -> &[T] {
        &self.rows
    }

    /// The rows of a range of ids.
    pub fn range(&self, range: Range<I>) -> &[T] {
        &self.rows[range.start.index()..range.end.index()]
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(rows: Vec<T>) -> Self {
        Self { rows, key: PhantomData }
    }
}

impl<I, T> From<IndexVec<I, T>> for Vec<T> {
    fn from(table: IndexVec<I, T>) -> Self {
        table.rows
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<S: IntoIterator<Item = T>>(rows: S) -> Self {
        Self::from(rows.into_iter().collect::<Vec<T>>())
    }
}

impl<'a, I: Id, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.rows[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.rows[id.index()]
    }
}

impl<I: Id, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter_enumerated()).finish()
    }
}

/// A list of `T` for each `I`, all in one flat vector.
#[derive(Clone, PartialEq, Eq)]
pub struct Lists<I, T> {
    ends: Vec<u32>,
    items: Vec<T>,
    key: PhantomData<fn(I)>,
}

impl<I: Id, T: Copy> Lists<I, T> {
    /// No lists.
    pub const fn new() -> Self {
        Self { ends: Vec::new(), items: Vec::new(), key: PhantomData }
    }

    /// Appends a list for the next id.
    ///
    /// # Panics
    /// If there are more than `u32::MAX` items in all.
    pub fn push(&mut self, list: impl IntoIterator<Item = T>) -> I {
        let id = I::from_index(self.ends.len());
        self.items.extend(list);
        self.ends.push(u32::try_from(self.items.len()).expect("at most u32::MAX items in all"));
        id
    }

    /// Groups `pairs` by their first half: list `i` holds the second halves in their given order.
    /// Cost: linear.
    pub fn group(len: usize, pairs: &[(I, T)]) -> Self {
        let mut ends = vec![0_u32; len];
        for (id, _) in pairs {
            ends[id.index()] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            total += *end;
            *end = total;
        }
        // Filling from the back turns each end into a start; the next start is the end again.
        let mut starts = ends.clone();
        let mut items: Vec<T> = pairs.iter().map(|&(_, item)| item).collect();
        for &(id, item) in pairs.iter().rev() {
            let place = &mut starts[id.index()];
            *place -= 1;
            items[*place as usize] = item;
        }
        Self { ends, items, key: PhantomData }
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of items in all lists.
    pub fn item_count(&self) -> usize {
        self.items.len()
    }

    /// All lists, by ascending id.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[T]> {
        (0..self.ends.len()).map(|index| &self[I::from_index(index)])
    }
}

impl<I: Id, T: Copy> Default for Lists<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> Index<I> for Lists<I, T> {
    type Output = [T];
    fn index(&self, id: I) -> &[T] {
        let index = id.index();
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.items[start..self.ends[index] as usize]
    }
}

impl<I: Id, T: Copy + fmt::Debug> fmt::Debug for Lists<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouping_keeps_the_order_of_each_list() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c'), (0, 'd')].map(|(i, c)| (OpId::new(i), c));
        let lists = Lists::group(4, &pairs);
        assert_eq!(lists.iter().collect::<Vec<_>>(), [&['b', 'd'][..], &[], &['a', 'c'], &[]]);
    }

    #[test]
    fn pushed_lists_are_read_back() {
        let mut lists: Lists<OpId, u8> = Lists::new();
        lists.push([1, 2]);
        let empty = lists.push([]);
        let last = lists.push([3]);
        assert_eq!((&lists[empty], &lists[last]), (&[][..], &[3][..]));
    }
}
