use super::*;
use crate::sample;
use lowtide_core::{Interval, Size, Step};

/// Residences of one buffer: first byte, bytes, first step, step after the last.
fn check_live(rows: &[[u32; 4]], wanted: &[u64]) {
    let mut plan = sample::plan();
    let row = plan.residences.iter().next().copied().unwrap();
    let residence = |&[offset, bytes, start, end]: &[u32; 4]| Residence {
        offset: Bytes(offset.into()),
        size: Size::Fixed(Bytes(bytes.into())),
        span: Interval::new(Step(start), Step(end)),
        ..row
    };
    plan.residences = rows.iter().map(residence).collect();
    let live: Vec<u64> = live_curve(&plan).iter().map(|bytes| bytes.0).collect();
    assert_eq!(live, wanted);
}

#[test]
fn the_pool_and_bytes_handed_over_add_nothing() {
    let live = live_curve(&sample::plan());
    assert_eq!(live, [192, 128, 128].map(Bytes));
}

#[test]
fn a_chain_in_place_counts_once() {
    check_live(&[[0, 64, 0, 2], [0, 64, 1, 3], [0, 64, 2, 3]], &[64, 64, 64]);
}

#[test]
fn parts_inside_a_whole_count_once() {
    check_live(&[[0, 64, 0, 2], [64, 64, 1, 2], [0, 128, 1, 3]], &[64, 128, 128]);
}

#[test]
fn parts_smaller_than_a_block_share_it() {
    check_live(&[[0, 32, 0, 1], [32, 32, 0, 2], [96, 1, 0, 3]], &[128, 128, 64]);
}

#[test]
fn empty_residences_and_spans_beyond_the_end_are_harmless() {
    check_live(&[[32, 0, 0, 3], [0, 64, 2, 9], [0, 64, 7, 9], [0, 64, 1, 0]], &[0, 0, 64]);
}

/// What a bitmap of all blocks says.
fn counted(stays: &[[u32; 4]]) -> Vec<u64> {
    let holds = |step: u32, block: u32| {
        let covers = |&[offset, bytes, start, end]: &[u32; 4]| {
            let blocks = offset / 64..(offset + bytes).div_ceil(64);
            bytes > 0 && (start..end).contains(&step) && blocks.contains(&block)
        };
        stays.iter().any(covers)
    };
    (0..3).map(|step| 64 * (0..16).filter(|&block| holds(step, block)).count() as u64).collect()
}

#[test]
fn the_tree_agrees_with_counting_blocks() {
    arbtest::arbtest(|u| {
        let count = u.int_in_range(1..=8)?;
        let mut stay = || -> arbitrary::Result<[u32; 4]> {
            let start = u.int_in_range(0..=2)?;
            let (offset, bytes) = (u.int_in_range(0..=500)?, u.int_in_range(0..=400)?);
            Ok([offset, bytes, start, u.int_in_range(start..=3)?])
        };
        let stays = (0..count).map(|_| stay()).collect::<Result<Vec<_>, _>>()?;
        check_live(&stays, &counted(&stays));
        Ok(())
    });
}
