use super::*;
use lowtide_core::{Align, Interval, Item, Rect, Step};

fn read(text: &str) -> NamedProblem {
    read_problem(text.as_bytes()).unwrap()
}

fn item(text: &str) -> Item {
    read(text).problem.items()[BufferId::new(0)].clone()
}

fn check_error(text: &str, wanted: &str) {
    assert_eq!(read_problem(text.as_bytes()).unwrap_err().to_string(), wanted);
}

/// A rectangle: first byte, bytes, first step, step after the last.
fn rect([offset, bytes, start, end]: [u32; 4]) -> Rect {
    let span = Interval::new(Step(start), Step(end));
    Rect { offset: Bytes(offset.into()), bytes: Bytes(bytes.into()), span }
}

#[test]
fn columns_may_stand_in_any_order() {
    let text = "alignment,size,upper,lower,id\n32,100,7,-3,a\n,5,9,7,b\n";
    let named = read(text);
    assert_eq!(named.ids.as_slice(), ["a", "b"]);
    assert_eq!(named.times, [-3, 7, 9]);
    let align = Align::new(32).unwrap();
    let items = named.problem.items().as_slice();
    assert_eq!(items[0], Item::new(Bytes(100), Interval::new(Step(0), Step(1)), align));
    assert_eq!(items[1], Item::new(Bytes(5), Interval::new(Step(1), Step(2)), Align::ONE));
}

#[test]
fn older_names_are_understood_and_their_ends_are_inclusive() {
    let old = item("buffer,start,end,size,gaps\na,0,9,64,2-4\n");
    let new = item("id,lower,upper,size,gaps\na,0,10,64,2-5\n");
    assert_eq!(old, new);
    assert_eq!(read("buffer_id,begin,end,size\na,5,5,1\n").times, [5, 6]);
}

#[test]
fn gaps_cut_an_item_into_rectangles() {
    let item = item("id,lower,upper,size,gaps\na,10,60,64,40-50@16:32 20-30\n");
    let wanted = [[0, 64, 0, 1], [0, 64, 2, 3], [16, 16, 3, 4], [0, 64, 4, 5]].map(rect);
    assert_eq!(item.rects(), wanted);
}

#[test]
fn gaps_may_touch_each_other_and_both_ends() {
    let whole = item("id,lower,upper,size,gaps\na,-5,5,64,-5--2 -2-5\n");
    assert_eq!(whole.rects(), [rect([0, 0, 0, 2])]);
    let ends = item("id,lower,upper,size,gaps\na,0,9,64,0-2 7-9@0:1\n");
    assert_eq!(ends.rects(), [[0, 64, 1, 2], [0, 1, 2, 3]].map(rect));
}

#[test]
fn offsets_are_pins_and_a_placement_only_when_asked_for() {
    let named = read("id,lower,upper,size,offset\na,0,2,64,128\nb,0,2,8,\n");
    assert_eq!(named.offsets.as_slice(), [Some(Bytes(128)), None]);
    let pins = |problem: &Problem| problem.items().iter().map(|item| item.pin).collect::<Vec<_>>();
    assert_eq!(pins(&named.problem), [None, None]);
    assert_eq!(pins(&named.pinned().unwrap()), [Some(Bytes(128)), None]);
    assert_eq!(named.placement().unwrap_err().to_string(), "item `b` has no offset");
    let placement = read("id,lower,upper,size,offset\na,0,2,64,128\n").placement().unwrap();
    assert_eq!((placement.size, placement.offsets.as_slice()), (Bytes(192), &[Bytes(128)][..]));
}

fn placed(text: &str, offsets: &[u64]) -> String {
    let offsets = offsets.iter().copied().map(Bytes).collect();
    let mut out = Vec::new();
    let placement = Placement { offsets, size: Bytes::ZERO };
    write_placement(&read(text), &placement, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_placement_keeps_the_columns_and_the_rows() {
    let text = "size,hint,end,start,buffer\n8,,4,-2,\"b, 1\"\n9,7,2,1,a\n";
    let wanted = "size,hint,end,start,buffer,offset\n8,,4,-2,\"b, 1\",16\n9,7,2,1,a,0\n";
    assert_eq!(placed(text, &[16, 0]), wanted);
    assert_eq!(
        placed("id,offset,lower,upper,size\na,5,0,1,2\n", &[7]),
        "id,offset,lower,upper,size\na,7,0,1,2\n"
    );
}

#[test]
fn benchmark_problems_are_read() {
    let cases = [("A.1048576", 154), ("C.1048576", 203), ("mobilenet_v2_224_f32", 65)];
    for (name, items) in cases {
        let path = format!("{}/../../testdata/problems/{name}.csv", env!("CARGO_MANIFEST_DIR"));
        let named = read_problem(&std::fs::read(path).unwrap()).unwrap();
        assert_eq!(named.problem.items().len(), items, "{name}");
    }
}

#[test]
fn blank_lines_and_spaces_and_carriage_returns_are_harmless() {
    let named = read(" id, lower,upper ,size\r\n a , 0 , 1 , 2 \r\n\r\n  \r\n");
    assert_eq!(named.ids.as_slice(), ["a"]);
    assert!(read("id,lower,upper,size\n").ids.is_empty());
}

#[test]
fn wrong_headers_are_named() {
    check_error("", "the header has no column `upper`; wanted at least id, lower, upper and size");
    check_error(
        "id,lower,upper\n",
        "the header has no column `size`; wanted at least id, lower, upper and size",
    );
    check_error(
        "id,lower,upper,size,colour\n",
        "line 1: column `colour` is unknown; wanted id, lower, upper (or end), size, alignment, \
         gaps, hint, offset, space or weight",
    );
    check_error(
        "id,start,upper,size,lower\n",
        "line 1: column `lower` says the same as column `start`",
    );
}

#[test]
fn lines_are_counted_as_people_count_them() {
    let cells = |line: u64| format!("line {line} has 1 cells, the header has 4");
    check_error("id,lower,upper,size\n\n\na,0,1,2\n\r\n\nb\n", &cells(7));
    check_error("id,lower,upper,size\r\n\"a\nb\",0,1,2\r\nb\r\n", &cells(4));
}

/// One row of a table with all columns.
fn check_row(row: &str, wanted: &str) {
    check_error(&format!("id,lower,upper,size,alignment,gaps,offset\n{row}\n"), wanted);
}

#[test]
fn rows_of_another_length_are_named() {
    check_row("a,0,1", "line 2 has 3 cells, the header has 7");
    check_row("a,0,1,1,1,,,\n", "line 2 has 8 cells, the header has 7");
}

#[test]
fn wrong_numbers_are_named() {
    const INTEGER: &str = "a whole number of -9223372036854775808 to 9223372036854775807";
    const BYTES: &str = "a whole number of bytes of 0 to 9223372036854775807";
    check_row("a,x,1,1,1,,", &format!("line 2, column `lower`: found `x`, wanted {INTEGER}"));
    let large = "9223372036854775808";
    check_row(
        &format!("a,0,{large},1,1,,"),
        &format!("line 2, column `upper`: found `{large}`, wanted {INTEGER}"),
    );
    check_row("a,0,1,-1,1,,", &format!("line 2, column `size`: found `-1`, wanted {BYTES}"));
    check_row("a,0,1,1,1,,-8", &format!("line 2, column `offset`: found `-8`, wanted {BYTES}"));
    for align in ["0", "3", "4194304"] {
        let wanted = "a power of two of 1 to 2097152";
        check_row(
            &format!("a,0,1,1,{align},,"),
            &format!("line 2, column `alignment`: found `{align}`, wanted {wanted}"),
        );
    }
}

#[test]
fn empty_lifetimes_are_named() {
    check_row(
        "a,5,5,1,,,",
        "line 2, column `upper`: found `5`, wanted more than the 5 where it starts",
    );
    check_error(
        "id,lower,end,size\na,5,4,1\n",
        "line 2, column `end`: found `4`, wanted not less than the 5 where it starts",
    );
    check_error(
        "id,lower,end,size\na,5,9223372036854775807,1\n",
        "line 2, column `end`: found `9223372036854775807`, wanted less than 9223372036854775807",
    );
}

#[test]
fn wrong_gaps_are_named() {
    let check = |gaps: &str, found: &str, wanted: &str| {
        let wanted = format!("line 2, column `gaps`: found `{found}`, wanted {wanted}");
        check_row(&format!("a,10,60,64,,{gaps},"), &wanted);
    };
    check("20", "20", "gaps such as 10-20 or 10-20@0:16");
    check("5-20", "5-20", "a gap inside the lifetime [10, 60)");
    check("20-20", "20-20", "a gap inside the lifetime [10, 60)");
    check("30-50 20-31", "30-50", "a gap that does not overlap 20-31");
    check("20-30@5", "5", "a window such as 0:16");
    check("20-30@8:65", "8:65", "a window of some bytes inside the size of 64");
    check("20-30@8:8", "8:8", "a window of some bytes inside the size of 64");
}

#[test]
fn a_name_is_given_once_and_sizes_have_a_limit() {
    check_row("a,0,1,1,,,\na,0,1,1,,,", "line 3: id `a` is taken by line 2");
    check_row(
        "a,0,1,9223372036854775807,,,",
        "with item `a` the sizes and offsets add up to more than 4.00 EiB",
    );
}
