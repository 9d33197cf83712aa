//! Chores of the project, as one command each.
//!
//! ~~~text
//! cargo xtask test            every test: the README's test command
//! cargo xtask check           what CI runs: format, clippy, documentation, licences, tests
//! cargo xtask bench ...       figures, from a release build of `bench/`
//! cargo xtask peers ...       holds shapes and order against onnx and ONNX Runtime, installed from PyPI
//! cargo xtask fuzz T S        fuzzes target T for S seconds
//! cargo xtask loom            the workers' hand-over in all ways in which threads can interleave
//! cargo xtask tsan            runs on several workers, watched by ThreadSanitizer
//! ~~~
//! Without dependencies, so that it is built in a moment.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask test | check | bench [ARGS...] | peers ARGS... | fuzz TARGET SECONDS | loom | tsan";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["test"] => test(),
        ["check"] => check(),
        ["bench", rest @ ..] => bench(rest),
        ["peers", rest @ ..] => peers(rest),
        ["fuzz", target, seconds] => fuzz(target, seconds),
        ["loom"] => loom(),
        ["tsan"] => tsan(),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&message);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a chore speaks to the terminal")]
fn say(message: &str) {
    eprintln!("xtask: {message}");
}

/// Runs a command in the project's root; its failure is ours.
fn run(program: &str, args: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    say(&format!("{program} {}", args.join(" ")));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut command = Command::new(program);
    command.args(args).envs(variables.iter().copied()).current_dir(root);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{program} {}` failed: {status}", args.join(" "))),
        Err(error) => Err(format!("cannot run `{program}`: {error}")),
    }
}

fn cargo(args: &[&str]) -> Result<(), String> {
    run("cargo", args, &[])
}

fn test() -> Result<(), String> {
    cargo(&["test", "--workspace", "--all-features", "--no-fail-fast"])
}

/// Rebuilds the runtime with the model checker's threads, in a directory of its own.
fn loom() -> Result<(), String> {
    let test = ["test", "--release", "-p", "lowtide-runtime", "--lib", "model"];
    let args = [&test[..], &["--target-dir", "target/loom"]].concat();
    run("cargo", &args, &[("RUSTFLAGS", "--cfg loom")])
}

/// The sanitizer is part of every toolchain, but only to be had by those who ask for unstable options. Addresses stay where
/// they are (`setarch -R`), as it knows no others.
fn tsan() -> Result<(), String> {
    let told = Command::new("rustc").args(["--print", "host-tuple"]).output();
    let told = told.map_err(|error| format!("cannot run `rustc`: {error}"))?;
    let host = String::from_utf8_lossy(&told.stdout);
    let flags =
        "--cfg tsan -Zsanitizer=thread -Zunstable-options -Cunsafe-allow-abi-mismatch=sanitizer";
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tsan.txt");
    let options = format!("suppressions={root} halt_on_error=1");
    let variables =
        [("RUSTC_BOOTSTRAP", "1"), ("RUSTFLAGS", flags), ("TSAN_OPTIONS", options.as_str())];
    let tests = ["--test", "parallel", "--test", "late_random"];
    let test = [&["-R", "cargo", "test", "-p", "lowtide"][..], &tests].concat();
    let args = [&test[..], &["--target", host.trim(), "--target-dir", "target/tsan"]].concat();
    run("setarch", &args, &variables)
}

fn check() -> Result<(), String> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"])?;
    for manifest in ["bench/Cargo.toml", "fuzz/Cargo.toml"] {
        cargo(&["fmt", "--manifest-path", manifest, "--check"])?;
    }
    for features in [&[][..], &["--no-default-features", "--features", "rivals"]] {
        let manifest = ["clippy", "--manifest-path", "bench/Cargo.toml"];
        cargo(&[&manifest, features, &["--", "-D", "warnings"]].concat())?;
    }
    let warnings = [("RUSTDOCFLAGS", "-D warnings")];
    run("cargo", &["doc", "--workspace", "--no-deps", "--all-features"], &warnings)?;
    if is_installed("deny") {
        // Advisories would need a list from the network.
        cargo(&["deny", "check", "licenses", "bans", "sources"])?;
    }
    loom()?;
    test()
}

fn bench(args: &[&str]) -> Result<(), String> {
    let fixed = ["run", "--release", "--quiet", "--manifest-path", "bench/Cargo.toml"];
    if args == ["overhead"] {
        // Under each allocator, without the counters that `run` needs.
        for features in ["", "mimalloc"] {
            let chosen = ["--no-default-features", "--features", features, "--"];
            cargo(&[&fixed[..], &chosen, args].concat())?;
        }
        return Ok(());
    }
    if args.first() == Some(&"open") {
        let chosen = ["--no-default-features", "--features", "mimalloc", "--"];
        return cargo(&[&fixed[..], &chosen, args].concat());
    }
    if args.first() == Some(&"pool") {
        let chosen = ["--no-default-features", "--features", "rivals", "--"];
        return cargo(&[&fixed[..], &chosen, args].concat());
    }
    cargo(&[&fixed[..], &["--"], args].concat())
}

/// Runs `bench/peers/peers.py` with its packages in `target/peers` and a release build of the command line.
fn peers(args: &[&str]) -> Result<(), String> {
    const PACKAGES: [&str; 3] = ["numpy==2.2.6", "onnx==1.19.1", "onnxruntime==1.32.0"];
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let target = env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| format!("{root}/target"));
    let peers = format!("{target}/peers");
    let python = format!("{peers}/venv/bin/python");
    cargo(&["build", "--release", "--quiet", "-p", "lowtide"])?;
    if !Path::new(&format!("{peers}/installed")).exists() {
        run("python3", &["-m", "venv", &format!("{peers}/venv")], &[])?;
        run(&python, &[&["-m", "pip", "install", "--quiet"][..], &PACKAGES].concat(), &[])?;
        std::fs::write(format!("{peers}/installed"), PACKAGES.join("\n"))
            .map_err(|error| format!("cannot write to {peers}: {error}"))?;
    }
    let lowtide = format!("{target}/release/lowtide");
    let variables = [("LOWTIDE", lowtide.as_str()), ("PEERS", peers.as_str())];
    run(&python, &[&["bench/peers/peers.py"], args].concat(), &variables)
}

fn fuzz(target: &str, seconds: &str) -> Result<(), String> {
    if !is_installed("fuzz") {
        cargo(&["install", "cargo-fuzz", "--locked"])?;
    }
    let time = format!("-max_total_time={seconds}");
    cargo(&["fuzz", "run", "-s", "none", target, "--", &time])
}

/// Whether `cargo NAME` can be run.
fn is_installed(name: &str) -> bool {
    let version = Command::new("cargo").args([name, "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}
