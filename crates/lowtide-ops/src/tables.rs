//! The tables of operator types, by family: a name in, a row out.
//!
//! ~~~text
//! ""             elementwise | layout | normalisation | compute | reduction | control
//! com.microsoft  contrib
//! ~~~
//! Each table is sorted by name, and no name stands in two tables of one domain (a test looks).

mod compute;
mod contrib;
mod control;
mod elementwise;
mod layout;
mod normalisation;
mod reduction;

use crate::cost::CostRule;
use crate::declaration::Declaration;
use lowtide_core::Registry;
use std::sync::Arc;

/// One family.
pub(crate) struct Table {
    /// Sorted by name.
    pub(crate) rows: &'static [Declaration],
    /// How much its operators calculate, where a row does not say.
    pub(crate) cost: Option<CostRule>,
}

static STANDARD: [&Table; 6] = [
    &elementwise::TABLE,
    &layout::TABLE,
    &normalisation::TABLE,
    &compute::TABLE,
    &reduction::TABLE,
    &control::TABLE,
];
static CONTRIB: [&Table; 1] = [&contrib::TABLE];

/// The tables, each with its domain.
const DOMAINS: [(&str, &[&Table]); 2] = [("", &STANDARD), ("com.microsoft", &CONTRIB)];

/// All types of operators that are declared here. More can be added to it.
pub fn standard() -> Registry {
    let mut registry = Registry::new();
    for declaration in declarations() {
        registry.add(Arc::new(declaration));
    }
    registry
}

/// All rows, with what they have from their table and its domain.
pub(crate) fn declarations() -> impl Iterator<Item = Declaration> {
    DOMAINS.into_iter().flat_map(|(domain, tables)| {
        tables.iter().flat_map(move |table| {
            let whole = move |row: &Declaration| {
                let cost = row.cost.or(table.cost);
                Declaration { domain, cost, ..*row }
            };
            table.rows.iter().map(whole)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Types that models in the wild use, most frequent first.
    const USED: &str = "Add Conv Concat Relu Mul Reshape Transpose Slice Gemm Div Gather Unsqueeze \
        GlobalAveragePool Shape Softmax Flatten MatMul Cast MaxPool Sigmoid ConstantOfShape \
        LayerNormalization Sub Expand ReduceMean Equal Squeeze Erf Where Resize Pow Sqrt \
        BatchNormalization Split HardSigmoid Clip Pad AveragePool Identity Tanh If HardSwish \
        DynamicQuantizeLinear MatMulInteger Max ReduceSum Exp ReduceMax LessOrEqual Neg Range \
        ConvTranspose Log Cos Sin Min DequantizeLinear LSTM Ceil GreaterOrEqual ArgMax GatherND NonZero \
        TopK Greater LeakyRelu ReduceMin ScatterND PRelu Tile And Less Mod Floor ScatterElements \
        Reciprocal ReduceProd Trilu GridSample InstanceNormalization ConvInteger IsNaN Not RoiAlign \
        NonMaxSuppression Abs GlobalMaxPool GatherElements";

    #[test]
    fn every_type_in_use_is_declared() {
        let used: Vec<_> = USED.split_whitespace().collect();
        assert_eq!(used.len(), 88);
        let known = standard();
        let missing: Vec<_> = used.iter().filter(|kind| known.find("", kind).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(known.find("com.microsoft", "DynamicQuantizeLSTM").is_some());
    }

    #[test]
    fn an_unknown_domain_declares_nothing() {
        let known = standard();
        assert!(known.find("com.example", "Relu").is_none());
        assert!(known.find("com.microsoft", "Relu").is_none());
    }

    #[test]
    fn rows_are_sorted_and_no_name_stands_twice() {
        for (_, tables) in DOMAINS {
            let mut seen = BTreeSet::new();
            for table in tables {
                assert!(table.rows.is_sorted_by_key(|row| row.kind));
                assert!(table.rows.iter().all(|row| seen.insert(row.kind)));
            }
        }
    }
}
