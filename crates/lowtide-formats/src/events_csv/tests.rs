use super::*;
use crate::sample;

fn table() -> Vec<String> {
    let mut out = Vec::new();
    write_events(&sample::graph(), &sample::plan(), &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn the_first_five_columns_are_the_contract() {
    let contract = "event_id,event_type,tensor_name,buffer_index,op_id,";
    assert_eq!(
        table()[0],
        format!("{contract}step,offset,bytes,space,worker,tensor_id,op_name,op_type")
    );
}

#[test]
fn names_are_quoted_and_offsets_count_from_the_space() {
    assert_eq!(table()[1], "1,ALLOC,\"a, \"\"first\"\"\",0,0,0,0,100,arena,,1,conv,Conv");
    assert_eq!(table()[2], "2,ALLOC,scratch of conv,1,0,0,128,10,arena,,,conv,Conv");
}

#[test]
fn an_operator_has_no_tensor_and_no_buffer() {
    assert_eq!(table()[3], "3,EXEC,-,-,0,0,,,,,,conv,Conv");
}

#[test]
fn allocs_belong_to_the_next_operator_and_frees_to_the_last() {
    assert_eq!(table()[4], "4,FREE,scratch of conv,1,0,0,128,10,arena,,,conv,Conv");
    assert_eq!(table()[5], "5,ALLOC,b,0,1,1,0,100,arena,,2,relu,Relu");
}

#[test]
fn what_lies_in_the_pool_has_no_offset() {
    assert_eq!(table()[8], "8,ALLOC,c,2,2,2,,,pool,,3,,Pad");
}

#[test]
fn an_empty_plan_has_a_header() {
    let plan = Plan { events: Vec::new(), ..sample::plan() };
    let mut out = Vec::new();
    write_events(&sample::graph(), &plan, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 1);
}
