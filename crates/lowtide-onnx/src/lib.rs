//! Reads and writes ONNX: bytes in, [`Model`] out, and the same bytes in another order. No byte is trusted.
//!
//! ~~~text
//! bytes ──count──> ──decode──> messages ──inline──> ──name by name──> Model { graphs, opsets, metadata }
//!           │         │                     │             │
//!        too many    truncated         too deep      undefined, written twice, negative: errors say where
//!
//! bytes ──and an order──> the same bytes, operators in that order
//! ~~~
//! | what a file holds | what it becomes |
//! |---|---|
//! | graph input | an input; a weight if it is an initializer too, or listed in the metadata `weight_inputs` |
//! | initializer, `Constant` | a weight with its value, where possible a piece of the file; no operator is left |
//! | body of an `If`, `Loop`, `Scan` | a graph of the model; outer values that it reads are its captured tensors |
//! | local function | nothing; each call becomes the operators of its function |
//! | `value_info` and the like | declared type and shape; what is no tensor has neither |
//!
//! A bad file gives an error: no panic, no recursion beyond [`Limits::max_depth`],
//! no memory asked for by a number in the file. Cycles are found later, when a model becomes a graph.
//! Cost: linear in the file.

#![deny(unsafe_code)]

mod attributes;
mod census;
mod elements;
mod error;
mod external;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod graph;
mod inline;
mod key;
mod limits;
mod load;
mod map;
mod options;
mod proto;
mod report;
#[cfg(test)]
mod testing;
mod types;
mod values;
#[cfg(test)]
mod variety;
mod weight_inputs;
mod wire;
mod write;

pub use error::LoadError;
pub use limits::Limits;
pub use options::{External, ReadOptions};
pub use report::{WeightReport, aligned};
pub use write::{WriteError, write_reordered};

use external::Files;
use lowtide_core::{Data, Model};
use prost::Message;
use std::path::Path;
use values::Values;

/// A model, and what it was read from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The model.
    pub model: Model,
    /// Where the values of its weights lie.
    pub report: WeightReport,
    /// The bytes of its file.
    pub bytes: Data,
}

/// Reads the model of a file, with the values that lie in files beside it.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Loaded, LoadError> {
    let bytes = map::contents(path, options.mmap, options.limits.max_file_bytes)
        .map_err(|source| LoadError::Io { path: path.to_owned(), source })?;
    decode(bytes, options, Files::beside(path, options))
}

/// Reads the model of a file's bytes; values in other files are looked for in `folder`, if there is one.
pub fn read_bytes(
    bytes: Data,
    folder: Option<&Path>,
    options: &ReadOptions,
) -> Result<Loaded, LoadError> {
    decode(bytes, options, Files::of_folder(folder, options))
}

/// Reads the model of a file's bytes; values in other files are left out.
pub fn parse(bytes: Data, limits: &Limits) -> Result<Model, LoadError> {
    read_bytes(bytes, None, &(*limits).into()).map(|loaded| loaded.model)
}

fn decode(bytes: Data, options: &ReadOptions, files: Files<'_>) -> Result<Loaded, LoadError> {
    let limit = options.limits.max_file_bytes;
    if bytes.len() as u64 > limit {
        return Err(LoadError::FileTooLong { limit });
    }
    census::check(&bytes, &options.limits)?;
    let malformed = |error: prost::DecodeError| LoadError::Malformed { reason: error.to_string() };
    let mut proto = proto::ModelProto::decode(bytes.clone()).map_err(malformed)?;
    let warnings = inline::inline(&mut proto, &options.limits)?;
    let mut values = Values::new(&options.limits, files);
    values.report.warnings = warnings;
    let model = load::model(&proto, &mut values)?;
    Ok(Loaded { model, report: values.report, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, FunctionProto, ModelProto};
    use crate::testing::{body, file, graph, op, shaped, weight, with};

    fn message(bytes: &[u8]) -> String {
        parse(Data::copy_from_slice(bytes), &Limits::default()).unwrap_err().to_string()
    }

    /// A file with everything in it that is read.
    fn rich_file() -> Vec<u8> {
        let mut proto = graph("x, c -> z", &["y = Add(x, w)"]);
        proto.input[0] = shaped("x", "batch 3");
        proto.initializer = vec![weight("w", &[3])];
        let branch = graph("-> v", &["v = Relu(y)"]);
        proto.node.push(with(op("z = If(c)"), body("then_branch", branch)));
        proto.node.push(with(op("u = F(y)"), float("alpha")));
        let reference = AttributeProto { ref_attr_name: "alpha".to_owned(), ..float("a") };
        let mut function = graph("s -> t", &["one: t = G(s)", "n = Relu(t)"]);
        function.node[0].attribute = vec![reference];
        let function = FunctionProto {
            name: "F".to_owned(),
            input: vec!["s".to_owned()],
            output: vec!["t".to_owned()],
            node: function.node,
            ..FunctionProto::default()
        };
        ModelProto { functions: vec![function], ..file(proto) }.encode_to_vec()
    }

    fn float(name: &str) -> AttributeProto {
        AttributeProto {
            name: name.to_owned(),
            f: Some(0.5),
            r#type: 1,
            ..AttributeProto::default()
        }
    }

    #[test]
    fn a_file_without_graph_is_no_model() {
        assert_eq!(message(&[]), "not an ONNX file: it holds no graph");
        assert_eq!(message(&[8, 8]), "not an ONNX file: it holds no graph");
    }

    #[test]
    fn a_file_cut_short_is_an_error_or_a_smaller_model() {
        let whole = rich_file();
        (0..=whole.len()).for_each(|end| fuzzing::fuzz_parse(&whole[..end]));
        assert!(message(&whole[..whole.len() - 1]).starts_with("not an ONNX file"));
    }

    #[test]
    fn a_flipped_byte_never_panics() {
        let whole = rich_file();
        for at in 0..whole.len() {
            for flip in [0x01, 0x07, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                fuzzing::fuzz_parse(&bytes);
            }
        }
    }

    #[test]
    fn a_huge_claimed_length_asks_for_no_memory() {
        // Field 7, a message of 64 GiB; field 14 in it would be next.
        assert!(
            message(&[0x3a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02]).starts_with("not an ONNX file")
        );
        // A tensor's `raw_data` that claims 2^63 bytes.
        let inner = [0x4a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];
        let mut bytes = vec![0x3a, 13, 0x2a, 11];
        bytes.extend(inner);
        assert!(message(&bytes).starts_with("not an ONNX file"));
    }

    #[test]
    fn bodies_nested_without_end_are_refused() {
        // Each round wraps the graph as a body: graph { node { attribute { g } } }.
        let mut bytes = Vec::new();
        while bytes.len() < 100_000 {
            for tag in [0x32, 0x2a, 0x0a] {
                bytes = wrap(tag, &bytes);
            }
        }
        assert!(message(&wrap(0x3a, &bytes)).contains("recursion limit"));
    }

    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![tag];
        prost::encoding::encode_varint(content.len() as u64, &mut bytes);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("no/such.onnx"), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "cannot read `no/such.onnx`");
    }

    #[test]
    fn random_bytes_never_panic() {
        arbtest::arbtest(|u| {
            fuzzing::fuzz_parse(u.arbitrary::<&[u8]>()?);
            Ok(())
        })
        .budget_ms(500);
    }

    #[test]
    fn a_damaged_file_never_panics() {
        let whole = rich_file();
        arbtest::arbtest(|u| {
            let mut bytes = whole.clone();
            for _ in 0..u.int_in_range(1..=8)? {
                let at = u.choose_index(bytes.len())?;
                bytes[at] = u.arbitrary()?;
            }
            fuzzing::fuzz_parse(&bytes);
            Ok(())
        })
        .budget_ms(1000);
    }
}
