//! Rules that the whole tree keeps: arrows between crates, paths that exist, where unsafe code may stand.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use cargo_metadata::{DependencyKind, MetadataCommand, Package};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files that may hold unsafe code, each with the reason.
const UNSAFE: [(&str, &str); 6] = [
    ("crates/lowtide-onnx/src/map.rs", "mapping a file rests on nobody changing it"),
    (
        "crates/lowtide-runtime/src/arena.rs",
        "slices of one block, proven apart when a run is bound",
    ),
    (
        "crates/lowtide-runtime/src/memory.rs",
        "pages of a map are given back while it is borrowed for writing",
    ),
    (
        "crates/lowtide-runtime/src/pool/raw.rs",
        "slices of blocks of the pool, each of which is given out once",
    ),
    (
        "crates/lowtide-runtime/src/pooled.rs",
        "blocks of the pool are moved while no run has a slice of one",
    ),
    ("bench/src/pool/rivals.rs", "allocators of others can only be asked by unsafe calls"),
];

/// Folders that the paths in code and documentation begin with.
const ROOTS: [&str; 8] =
    ["crates/", "docs/", "xtask/", "bench/", "fuzz/", "testdata/", "demo/", ".ci/"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Files of the tree with one of these endings, without what is built.
fn files(endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                let is_source = !matches!(name, "target" | ".git" | "corpus" | "artifacts");
                folders.extend(is_source.then(|| path.clone()));
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path.clone());
            }
        }
    }
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

fn packages() -> Vec<Package> {
    let manifest = root().join("Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().unwrap();
    metadata.packages
}

/// The arrows of the table in ARCHITECTURE.md: crate, and what it depends on.
fn drawn() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split("| crate | depends on |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        (names(cells[1]).into_iter().next().unwrap(), names(cells[2]))
    })
    .collect()
}

#[test]
fn the_crates_depend_on_each_other_as_drawn() {
    let drawn = drawn();
    let packages = packages();
    let members: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    assert_eq!(members, drawn.keys().map(String::as_str).collect());
    for package in &packages {
        let name = package.name.as_str();
        let inner = package.dependencies.iter().filter(|d| members.contains(d.name.as_str()));
        let (dev, normal): (Vec<_>, Vec<_>) =
            inner.partition(|dependency| dependency.kind == DependencyKind::Development);
        let normal: BTreeSet<String> = normal.into_iter().map(|d| d.name.clone()).collect();
        assert_eq!(normal, drawn[name], "dependencies of {name}");
        for dependency in dev {
            let allowed = dependency.name == name || drawn[name].contains(&dependency.name);
            assert!(allowed, "{name} tests with {}", dependency.name);
        }
    }
}

#[test]
fn only_formats_knows_serde_and_core_knows_little() {
    for package in packages() {
        let normal = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
        let names: BTreeSet<&str> = normal.map(|dependency| dependency.name.as_str()).collect();
        let has_serde = names.iter().any(|name| name.starts_with("serde"));
        assert_eq!(has_serde, package.name == "lowtide-formats", "serde in {}", package.name);
        if package.name == "lowtide-core" {
            assert_eq!(
                names,
                BTreeSet::from(["arbitrary", "bytemuck", "bytes", "siphasher", "thiserror"])
            );
        }
    }
}

#[test]
fn the_checker_uses_nothing_that_the_planner_rests_on() {
    for path in files(&[".rs"]) {
        if !shown(&path).starts_with("crates/lowtide-core/src/check/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for word in ["Lifetimes", "Readiness", "Order::", "planner::"] {
            assert!(!text.contains(word), "{} uses {word}", shown(&path));
        }
    }
}

/// Paths in a text: words that begin with a folder of the tree.
fn named_paths(text: &str) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '-' | '_' | '*');
    let words = text.split(|c: char| !is_part(c));
    let begins = |word: &&str| ROOTS.iter().any(|root| word.starts_with(root));
    let trimmed = words.filter(begins).map(|word| word.trim_end_matches(['.', '/']));
    trimmed.filter(|word| !word.contains('*')).map(str::to_owned).collect()
}

#[test]
fn every_path_named_in_code_or_documents_exists() {
    let mut missing = Vec::new();
    for path in files(&[".rs", ".md", ".toml"]) {
        for named in named_paths(&fs::read_to_string(&path).unwrap()) {
            let beside = path.parent().unwrap().join(&named);
            if !root().join(&named).exists() && !beside.exists() {
                missing.push(format!("{}: {named}", shown(&path)));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn unsafe_code_stands_only_where_it_may() {
    let allowed: Vec<&str> = UNSAFE.iter().map(|&(path, _)| path).collect();
    // Spelt in two parts, so that this file does not find itself.
    let words = [" {", " fn", " impl", " extern"].map(|after| format!("{}{after}", "unsafe"));
    for path in files(&[".rs"]) {
        let text = fs::read_to_string(&path).unwrap();
        let has_any = words.iter().any(|word| text.contains(word));
        assert!(!has_any || allowed.contains(&shown(&path).as_str()), "{}", shown(&path));
    }
    for path in allowed {
        assert!(root().join(path).exists(), "{path} is gone");
    }
}

#[test]
fn the_supported_rust_version_is_stated_once() {
    let stated = |text: &str| {
        let lines = text.lines().map(str::trim);
        lines.filter(|line| line.starts_with("rust-version =")).count()
    };
    let counts = files(&["Cargo.toml"]).into_iter().filter_map(|path| {
        let count = stated(&fs::read_to_string(&path).unwrap());
        (count > 0).then(|| (shown(&path), count))
    });
    assert_eq!(counts.collect::<Vec<_>>(), [("Cargo.toml".to_owned(), 1)]);
}

#[test]
fn ci_runs_what_the_readme_says() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("cargo xtask test"));
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(ci.contains("cargo xtask check"));
}
