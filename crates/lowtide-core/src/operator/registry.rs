//! [`Registry`]: the types of operators that are known, by domain and type.

use super::Operator;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The types of operators that are known. A copy shares its operators.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    domains: BTreeMap<String, BTreeMap<String, Arc<dyn Operator>>>,
}

impl Registry {
    /// A registry that knows no operator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type of operator; it replaces one of the same domain and type, and returns that.
    pub fn add(&mut self, operator: Arc<dyn Operator>) -> Option<Arc<dyn Operator>> {
        let (domain, kind) = (operator.domain().to_owned(), operator.kind().to_owned());
        self.domains.entry(domain).or_default().insert(kind, operator)
    }

    /// The operator of a domain (empty: the standard one) and type.
    pub fn find(&self, domain: &str, kind: &str) -> Option<&dyn Operator> {
        self.domains.get(domain)?.get(kind).map(Arc::as_ref)
    }

    /// All operators, by domain and type.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Operator> {
        self.domains.values().flat_map(BTreeMap::values).map(Arc::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(&'static str, &'static str);

    impl Operator for Named {
        fn domain(&self) -> &str {
            self.0
        }

        fn kind(&self) -> &str {
            self.1
        }
    }

    #[test]
    fn operators_are_found_by_domain_and_type_and_replaced() {
        let mut registry = Registry::new();
        assert!(registry.add(Arc::new(Named("", "Relu"))).is_none());
        assert!(registry.add(Arc::new(Named("ours", "Relu"))).is_none());
        assert!(registry.add(Arc::new(Named("", "Relu"))).is_some());
        assert_eq!(registry.find("ours", "Relu").unwrap().domain(), "ours");
        assert!(registry.find("ours", "Conv").is_none());
        assert_eq!(registry.iter().count(), 2);
    }
}
