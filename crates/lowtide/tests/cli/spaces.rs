//! `lowtide pack --space`, as people type it.

use super::{files, lowtide, number, refused, run};
use std::fs;
use tempfile::TempDir;

/// `d` is too large for the first two; `e` is bound to the last.
const TABLE: &str = "id,lower,upper,size,space,weight\n\
    a,0,9,4,,\nb,100,102,6,,\nc,4,6,5,,\nd,8,9,20,,\ne,100,104,6,dram,50\nf,100,101,4,,1\n";
const SPACES: [&str; 5] = ["--space", "sram=9", "--space", "mid = 8B", "--space=dram"];

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

fn pack<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["pack", file], more].concat()
}

/// A table of buffers that differ in their names only.
fn equal_rows(count: usize, cells: &str) -> String {
    let rows = (0..count).map(|row| format!("b{row},{cells}\n"));
    [vec!["id,lower,upper,size\n".to_owned()], rows.collect()].concat().concat()
}

/// Exit code 1, with this on standard error.
#[track_caller]
fn no(args: &[&str], words: &str) -> String {
    let output = lowtide(args);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.contains(words), "{err}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn spaces_are_filled_and_what_was_spilled_is_said() {
    let folder = Folder::new();
    let file = folder.file("p.csv", TABLE);
    let text = run(0, &pack(&file, &SPACES));
    for part in [
        "6 buffers, placed\n",
        "  sram  9 B of 9 B, the least, proven; 3 buffers; lower bound 9 B, live at time 4; weight 15 of at most 15\n",
        "  mid   4 B of 8 B, the least, proven; 1 buffers; lower bound 4 B, live at time 100; weight 1\n",
        "  dram  20 B, the least, proven; 2 buffers; lower bound 20 B, live at time 8; weight 70\n",
        "  spilled, in this order: 3\n",
        "    `d` from sram: the buffer alone is larger\n",
        "    `f` from sram: at time 100 it was over by 1 B\n",
        "    `d` from mid: the buffer alone is larger\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn at_most_twenty_are_named() {
    let folder = Folder::new();
    let file = folder.file("p.csv", &equal_rows(30, "0,1,4"));
    let text = run(0, &pack(&file, &["--space", "sram=20", "--space", "dram"]));
    assert!(text.contains("in this order: 25\n") && text.ends_with("and 5 more\n"), "{text}");
    assert_eq!(text.matches(" from sram: at time 0 ").count(), 20, "{text}");
}

#[test]
fn what_is_written_is_right_and_stays() {
    let folder = Folder::new();
    let (file, solved) = (folder.file("p.csv", TABLE), folder.path("solved.csv"));
    run(0, &[pack(&file, &SPACES), vec!["-o", &solved]].concat());
    let text = fs::read_to_string(&solved).unwrap();
    assert!(text.starts_with("id,lower,upper,size,space,weight,offset\na,0,9,4,sram,,"), "{text}");
    assert!(text.contains("\nf,100,101,4,mid,1,0\n"), "{text}");
    let judged = run(0, &[pack(&solved, &SPACES), vec!["--check"]].concat());
    assert!(judged.contains("6 buffers, right"), "{judged}");
    run(0, &[pack(&solved, &SPACES), vec!["-o", &file]].concat());
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn given_places_are_judged() {
    let folder = Folder::new();
    let file =
        |rows: &str| folder.file("p.csv", &format!("id,lower,upper,size,space,offset\n{rows}\n"));
    let check = ["--space", "sram=9", "--space", "dram", "--check"];
    let overlap = run(1, &pack(&file("a,7,9,4,dram,0\nb,8,9,4,dram,3"), &check));
    let wanted = "2 buffers, wrong\n  fault: in dram: `a` and `b` both take byte 3 at time 8\n";
    assert!(overlap.ends_with(wanted), "{overlap}");
    let over = run(1, &pack(&file("a,7,9,4,sram,6"), &check));
    assert!(over.contains("fault: sram takes 10 bytes, its capacity is 9"), "{over}");
    for (row, words) in [
        ("a,7,9,4,,0", "nothing beside an empty `space`"),
        ("a,7,9,4,,", "`a` has no space"),
        ("a,7,9,4,sram,", "`a` has no offset"),
    ] {
        let message = refused(&pack(&file(row), &check));
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn json_has_the_promised_fields() {
    let folder = Folder::new();
    let file = folder.file("p.csv", TABLE);
    let docs = include_str!("../../../../docs/json.md");
    let json = run(0, &[pack(&file, &SPACES), vec!["--json"]].concat());
    for field in [
        "problem",
        "ok",
        "buffers",
        "spaces",
        "name",
        "capacity_bytes",
        "used_bytes",
        "lower_bound_bytes",
        "bound_proof",
        "proven",
        "weight",
        "most_weight",
        "spilled",
        "id",
        "from",
        "why",
        "time",
        "over_bytes",
        "steps",
        "faults",
        "seconds",
    ] {
        assert!(json.contains(&format!("\"{field}\": ")), "{field}: {json}");
        assert!(docs.contains(&format!("`{field}`")), "{field}");
    }
    assert_eq!((number(&json, "used_bytes"), number(&json, "most_weight")), (9, 15));
    let small = ["--space", "sram=9", "--space", "dram=8", "--json"];
    let json = no(&pack(&file, &small), "impossible");
    assert!(json.contains("\"impossible\": true") && json.contains("\"spaces\": []"), "{json}");
    assert!(json.contains("\"ok\": false") && json.contains("`d` needs 20 B"), "{json}");
    let plain = folder.file("plain.csv", "id,lower,upper,size\na,0,1,4\n");
    let json = run(0, &pack(&plain, &["--json"]));
    assert!(!json.contains("spaces") && !json.contains("spilled"), "{json}");
}

#[test]
fn impossible_and_not_found_are_told_apart() {
    let folder = Folder::new();
    let file = folder.file("p.csv", &equal_rows(4, "7,8,3"));
    let check = |first: &str, second: &str, words: &str| {
        no(&pack(&file, &["--space", first, "--space", second]), words)
    };
    let text = check("a=4", "b=6", "impossible: at time 7 12 B are live");
    assert!(text.contains("4 buffers, impossible"), "{text}");
    check("a=2", "b=6", "impossible: what may lie only in b needs 12 B, its capacity is 6 B");
    check("a=2", "b=1", "impossible: `b0` needs 3 B");
    // Three of them fit, and no sum shows that the fourth does not.
    let text = check("a=5", "b=7", "none was found within the effort, and none is excluded");
    assert!(text.contains("not found") && !text.contains("impossible"), "{text}");
    let pins = "id,lower,upper,size,space,offset\na,0,2,4,s,0\nb,1,3,4,s,3\n";
    let pins = folder.file("pins.csv", pins);
    let message = refused(&pack(&pins, &["--space", "s"]));
    assert!(message.contains("cannot be kept: those of `a` and `b` clash"), "{message}");
}

#[test]
fn spaces_that_mean_nothing_are_refused() {
    let folder = Folder::new();
    let file = folder.file("p.csv", "id,lower,upper,size\na,0,1,4\n");
    let check = |spaces: &[&str], words: &str| {
        let message = refused(&pack(&file, spaces));
        assert!(message.contains(words), "{message}");
    };
    check(&["--space=a=4", "--space=a"], "--space gives `a` twice");
    check(&["--space=a", "--space=b"], "--space a has no capacity, and is not the last");
    check(&["--space", "=4"], "wanted NAME or NAME=BYTES");
    check(&["--space", ""], "wanted NAME or NAME=BYTES");
    check(&["--space", "a=much"], "is no number of bytes");
    check(&["--space", "a=-1"], "is no number of bytes");
    for other in ["--capacity=9", "--keep=x.csv", "--reserve=0:4"] {
        check(&["--space", "a=4", other], "cannot be used with");
    }
    // A time limit goes with them: what is found by then is right.
    run(0, &pack(&file, &["--space=a=4", "--time-limit=0"]));
    let many: Vec<String> = (0..65).map(|space| format!("--space=s{space}=4")).collect();
    check(&many.iter().map(String::as_str).collect::<Vec<_>>(), "65 spaces, wanted 1 to 64");
}

#[test]
fn a_row_that_names_a_space_wants_spaces() {
    let folder = Folder::new();
    let file = folder.file("p.csv", TABLE);
    let plain = folder.file("plain.csv", "id,lower,upper,size\na,0,1,4\n");
    for args in [pack(&file, &[]), pack(&file, &["--check"]), pack(&plain, &["--keep", &file])] {
        let message = refused(&args);
        assert!(message.contains("--space") && message.contains("line 6, column"), "{message}");
    }
    let message = refused(&pack(&file, &["--space", "sram"]));
    assert!(message.contains("found `dram`, wanted nothing, or one of sram"), "{message}");
}

#[test]
fn known_problems_fit_into_two_spaces_and_pass_the_judge() {
    let folder = Folder::new();
    let solved = folder.path("solved.csv");
    let spaces = ["--space", "sram=256KiB", "--space", "dram"];
    for file in files("problems", &["csv"]) {
        let write = ["--effort", "fast", "-o", &solved];
        run(0, &[pack(&file, &spaces), write.to_vec()].concat());
        run(0, &[pack(&solved, &spaces), vec!["--check"]].concat());
    }
}
