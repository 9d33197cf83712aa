//! Every way in which two threads can interleave: nobody has a block that another one has, and none is lost.
//!
//! A block is modelled by a cell that tells when two use it at once. Seeded faults show that the models would find one: the
//! model checker tells it by a panic.

use super::slots::{EMPTY, Slot};
use super::{Pool, PoolBlock, PoolConfig};
use crate::faulty::FaultyMemory;
use crate::sync::{Mutex, Ordering, lock};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use lowtide_core::Bytes;
use std::num::NonZeroUsize;

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// How a block leaves a slot, and how it gets there.
#[derive(Clone, Copy)]
struct Ways {
    take: fn(&Slot) -> Option<u32>,
    put: fn(&Slot, u32) -> bool,
}

const RIGHT: Ways = Ways { take: Slot::take, put: Slot::put };

/// Looks, then empties: another one may have looked in between.
fn take_in_two_steps(slot: &Slot) -> Option<u32> {
    let id = slot.0.load(Ordering::Acquire);
    slot.0.store(EMPTY, Ordering::Release);
    (id != EMPTY).then_some(id)
}

/// Hands over the number and not what was done before.
fn take_without_order(slot: &Slot) -> Option<u32> {
    let id = slot.0.swap(EMPTY, Ordering::Relaxed);
    (id != EMPTY).then_some(id)
}

/// Puts a block over whatever is there.
fn put_over(slot: &Slot, id: u32) -> bool {
    slot.0.store(id, Ordering::Release);
    true
}

/// One slot, a list behind a lock, and two blocks.
struct Shared {
    slot: Slot,
    list: Mutex<Vec<u32>>,
    blocks: [UnsafeCell<u32>; 2],
}

impl Shared {
    /// Takes a block, from the slot if one is there, uses it and gives it back.
    fn turn(&self, ways: Ways) {
        let id = (ways.take)(&self.slot).or_else(|| lock(&self.list).pop());
        let Some(id) = id else { return };
        self.blocks[id as usize].with_mut(|_| {});
        if !(ways.put)(&self.slot, id) {
            lock(&self.list).push(id);
        }
    }
}

fn hand_over(ways: Ways) {
    check(move || {
        let shared = Arc::new(Shared {
            slot: Slot::new(),
            list: Mutex::new(vec![0]),
            blocks: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        assert!(shared.slot.put(1));
        let other = Arc::clone(&shared);
        let thread = loom::thread::spawn(move || {
            other.turn(ways);
            other.turn(ways);
        });
        shared.turn(ways);
        thread.join().unwrap();
        let mut left = lock(&shared.list).clone();
        left.extend(shared.slot.take());
        left.sort_unstable();
        assert_eq!(left, [0, 1], "a block is lost, or there twice");
    });
}

#[test]
fn a_block_is_in_one_place() {
    hand_over(RIGHT);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_block_that_is_taken_twice_is_found() {
    hand_over(Ways { take: take_in_two_steps, ..RIGHT });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_hand_over_without_order_is_found() {
    hand_over(Ways { take: take_without_order, ..RIGHT });
}

#[test]
#[should_panic(expected = "a block is lost")]
fn a_block_that_is_put_over_another_is_found() {
    hand_over(Ways { put: put_over, ..RIGHT });
}

/// A pool of one block, for which two workers contend: at hand, at home, and in the lists.
#[test]
fn a_pool_gives_each_block_to_one() {
    check(|| {
        let config = PoolConfig {
            limit: Bytes(4096),
            workers: NonZeroUsize::new(2).unwrap(),
            homes: 1,
            segment: Bytes(4096),
            at_hand: Bytes(4096),
            ..PoolConfig::default()
        };
        let pool = Arc::new(Pool::new(&config, Box::new(FaultyMemory::new(Bytes(4096)))));
        let block = Arc::new(UnsafeCell::new(0));
        let turn = |pool: &Pool, cell: &UnsafeCell<i32>, worker, is_home: bool| {
            let bytes = Bytes(4000);
            let got =
                if is_home { pool.alloc_home(worker, 0, bytes) } else { pool.alloc(worker, bytes) };
            let Ok(got): Result<PoolBlock, _> = got else { return };
            cell.with_mut(|_| {});
            if is_home { pool.free_home(worker, 0, got) } else { pool.free(worker, got) }
        };
        let (other_pool, other_block) = (Arc::clone(&pool), Arc::clone(&block));
        let thread = loom::thread::spawn(move || {
            turn(&other_pool, &other_block, 1, false);
            turn(&other_pool, &other_block, 1, true);
        });
        turn(&pool, &block, 0, true);
        thread.join().unwrap();
        assert_eq!(pool.stats().used, Bytes::ZERO);
        assert_eq!(pool.release_idle(), Bytes(4096));
    });
}
