//! Graph to order.

mod score;

pub use score::score_order;
