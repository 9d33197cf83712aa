use super::*;
use crate::faulty::{Fault, FaultyMemory, Ledger};
use crate::memory::HostMemory;
use std::collections::VecDeque;
use std::thread;

fn pool(config: &PoolConfig) -> Pool {
    Pool::new(config, Box::new(HostMemory::default()))
}

fn faulty(limit: u64, memory: FaultyMemory) -> (Pool, Ledger) {
    let ledger = memory.ledger();
    let config = PoolConfig { limit: Bytes(limit), segment: Bytes(4096), ..PoolConfig::default() };
    (Pool::new(&config, Box::new(memory)), ledger)
}

fn give_all(pool: &Pool, worker: usize, blocks: impl IntoIterator<Item = PoolBlock>) {
    for block in blocks {
        pool.free(worker, block);
    }
}

/// Splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Sizes as of tensors: each doubling from 64 B to 1 MiB as often as any other.
fn tensor_bytes(state: &mut u64) -> u64 {
    let doubling = 64 << (random(state) % 14);
    doubling + random(state) % doubling
}

#[test]
fn blocks_are_aligned_apart_and_as_long_as_asked_for() {
    let pool = pool(&PoolConfig::default());
    let mut blocks: Vec<PoolBlock> = [0, 1, 255, 256, 300, 5000, 1 << 22]
        .map(|bytes| pool.alloc(0, Bytes(bytes)).unwrap())
        .into();
    for (block, byte) in blocks.iter_mut().zip(1..) {
        assert_eq!(pool.bytes(block).as_ptr() as usize % 256, 0);
        pool.bytes_mut(block).fill(byte);
    }
    for (block, byte) in blocks.iter().zip(1..) {
        assert!(pool.bytes(block).iter().all(|&found| found == byte));
        assert_eq!(pool.bytes(block).len(), block.len());
    }
    let asked = blocks.iter().map(|block| block.len() as u64).sum();
    let stats = pool.stats();
    assert_eq!((stats.asked, stats.allocs, stats.segments), (Bytes(asked), 7, 1));
    give_all(&pool, 0, blocks);
    assert_eq!((pool.stats().used, pool.stats().frees), (Bytes::ZERO, 7));
    assert!(pool.release_idle() > Bytes(4 << 20));
    assert_eq!((pool.stats().held, pool.stats().peak_held > Bytes(4 << 20)), (Bytes::ZERO, true));
}

#[test]
fn a_block_at_hand_or_at_home_is_found_again() {
    let pool = pool(&PoolConfig { homes: 2, ..PoolConfig::default() });
    let block = pool.alloc_home(0, 1, Bytes(9_000)).unwrap();
    let address = pool.bytes(&block).as_ptr();
    let [other, listed] = [9_000, 900_000].map(|bytes| pool.alloc(0, Bytes(bytes)).unwrap());
    pool.free(0, listed);
    pool.free_home(0, 1, block);
    let block = pool.alloc_home(0, 1, Bytes(9_500)).unwrap();
    assert_eq!(pool.bytes(&block).as_ptr(), address);
    pool.free_home(0, 1, block);
    // Of another size: the block goes to those at hand, where it is found.
    let larger = pool.alloc_home(0, 1, Bytes(90_000)).unwrap();
    let again = pool.alloc(0, Bytes(9_000)).unwrap();
    assert_eq!(pool.bytes(&again).as_ptr(), address);
    assert_eq!(pool.stats().from_hand, 2);
    for block in [other, larger, again] {
        pool.free(0, block);
    }
}

#[test]
#[should_panic(expected = "the block is of another pool")]
fn a_block_of_another_pool_is_refused() {
    let pools = [pool(&PoolConfig::default()), pool(&PoolConfig::default())];
    let block = pools[0].alloc(0, Bytes(1)).unwrap();
    pools[1].free(0, block);
}

#[test]
fn what_is_exhausted_says_what_is_free() {
    let (pool, ledger) = faulty(64 << 10, FaultyMemory::new(Bytes(1 << 30)));
    let blocks = [16 << 10, 16 << 10, 16 << 10].map(|bytes| pool.alloc(0, Bytes(bytes)).unwrap());
    let error = pool.alloc(0, Bytes(30 << 10)).unwrap_err().to_string();
    let wanted = "30.00 KiB are wanted of the pool: 16.00 KiB are free below the limit of 64.00 KiB, \
                  16.00 KiB of them together";
    assert_eq!(error, wanted);
    let [first, second, _kept] = blocks;
    pool.free(0, first);
    pool.free(0, second);
    // What was at hand is taken back, and idle segments make room.
    let large = pool.alloc(0, Bytes(30 << 10)).unwrap();
    pool.free(0, large);
    assert!(matches!(pool.alloc(0, Bytes(1 << 41)), Err(PoolError::TooLarge { .. })));
    drop(pool);
    assert_eq!(ledger.given().blocks, 0);
}

#[test]
fn every_failure_leaves_the_pool_usable_and_nothing_behind() {
    for fault in [Fault::Refused, Fault::Limit, Fault::NotHost] {
        for call in 0..6 {
            let memory = FaultyMemory::new(Bytes(1 << 20)).failing_at(call, fault);
            let (pool, ledger) = faulty(u64::MAX, memory);
            let (mut blocks, mut failed) = (Vec::new(), 0);
            for bytes in (1..=64).map(|at| at * 700) {
                match pool.alloc(0, Bytes(bytes)) {
                    Ok(block) => blocks.push(block),
                    Err(error) => {
                        assert!(matches!(error, PoolError::Memory(_)), "{error}");
                        failed += 1;
                    }
                }
            }
            let stats = pool.stats();
            assert_eq!((stats.allocs, stats.mapped), (blocks.len() as u64, ledger.given().bytes));
            assert!(failed > 0, "the capacity is below what is asked for");
            give_all(&pool, 0, blocks);
            let block = pool.alloc(0, Bytes(60_000)).unwrap();
            pool.free(0, block);
            pool.release_idle();
            assert_eq!(ledger.given().blocks, 0);
        }
    }
}

#[test]
fn blocks_keep_their_bytes_when_they_are_moved() {
    let config = PoolConfig { segment: Bytes(1 << 20), scattered: 5, ..PoolConfig::default() };
    let (mut pool, mut state, mut moved) = (pool(&config), 7, 0);
    let mut blocks: Vec<(PoolBlock, u8)> = Vec::new();
    for round in 0..6_000 {
        if random(&mut state) % 5 < 3 && blocks.len() < 400 {
            let bytes = tensor_bytes(&mut state) % 40_000;
            let mut block = pool.alloc(0, Bytes(bytes)).unwrap();
            let byte = random(&mut state).to_le_bytes()[0];
            pool.bytes_mut(&mut block).fill(byte);
            blocks.push((block, byte));
        } else if !blocks.is_empty() {
            let at = usize::try_from(random(&mut state)).unwrap() % blocks.len();
            pool.free(0, blocks.swap_remove(at).0);
        }
        if round % 300 == 299 {
            let before = pool.stats();
            if let Some(done) = pool.compact() {
                moved += done.blocks;
                assert!(done.scattered >= before.scattered);
                // Only the ends of segments, too short for what follows, are left.
                assert!(pool.stats().scattered < before.scattered);
            }
            for (block, byte) in &blocks {
                assert!(pool.bytes(block).iter().all(|found| found == byte));
            }
        }
    }
    assert!(moved > 300, "{moved}");
    let most = pool.stats().held;
    give_all(&pool, 0, blocks.into_iter().map(|(block, _)| block));
    assert_eq!(pool.release_idle(), most);
    assert!(pool.compact().is_none());
}

#[test]
fn what_is_held_keeps_its_bytes_when_pages_go_back() {
    let config = PoolConfig {
        segment: Bytes(16 << 20),
        idle_percent: 0,
        scattered: 2,
        ..PoolConfig::default()
    };
    let (mut pool, mut state) = (pool(&config), 11);
    let mut blocks: Vec<(PoolBlock, u8)> = Vec::new();
    for round in 0..4_000 {
        // Many are held, then few, and so on.
        let most = if round / 500 % 2 == 0 { 120 } else { 20 };
        while blocks.len() > most {
            let at = usize::try_from(random(&mut state)).unwrap() % blocks.len();
            pool.free(0, blocks.swap_remove(at).0);
        }
        let mut block = pool.alloc(0, Bytes(tensor_bytes(&mut state) % 300_000)).unwrap();
        let byte = random(&mut state).to_le_bytes()[0];
        pool.bytes_mut(&mut block).fill(byte);
        blocks.push((block, byte));
        if round % 250 == 249 {
            for step in 0..2 {
                if step == 1 {
                    pool.release_idle();
                    pool.compact();
                }
                for (block, byte) in &blocks {
                    assert!(pool.bytes(block).iter().all(|found| found == byte));
                }
            }
        }
    }
    let stats = pool.stats();
    assert!(stats.compactions > 3);
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    assert!(stats.discarded > Bytes(8 << 20), "{}", stats.discarded);
    give_all(&pool, 0, blocks.into_iter().map(|(block, _)| block));
    pool.release_idle();
    assert_eq!(pool.stats().held, Bytes::ZERO);
}

/// One block between two large free ones.
fn hollow(config: &PoolConfig) -> (Pool, PoolBlock) {
    let pool = pool(config);
    let [mut first, mut kept, mut last] = [96 << 20, 5_000, 96 << 20]
        .map(|bytes| pool.alloc(0, Bytes(bytes)).expect("there is no limit"));
    for block in [&mut first, &mut kept, &mut last] {
        pool.bytes_mut(block).fill(7);
    }
    give_all(&pool, 0, [first, last]);
    (pool, kept)
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn the_memory_of_the_process_falls() {
    let config = PoolConfig { segment: Bytes(256 << 20), ..PoolConfig::default() };
    let (pool, kept) = hollow(&config);
    let (before, stats) = (crate::resident::read().now, pool.stats());
    assert!(pool.release_idle() >= Bytes(190 << 20));
    // Other tests take some meanwhile.
    let after = crate::resident::read().now;
    assert!(before.saturating_sub(after) > Bytes(100 << 20), "{before} {after}");
    let now = pool.stats();
    assert_eq!((now.held + now.discarded, now.mapped), (stats.held, stats.mapped));
    assert!(now.held <= Bytes(16 << 10) && pool.bytes(&kept).iter().all(|&byte| byte == 7));
    pool.free(0, kept);
}

#[test]
fn memory_that_has_no_pages_to_give_keeps_them() {
    let memory = FaultyMemory::new(Bytes(1 << 30));
    let (pool, _) = faulty(u64::MAX, memory);
    let [first, kept] = [8 << 20, 300].map(|bytes| pool.alloc(0, Bytes(bytes)).unwrap());
    let second = pool.alloc(0, Bytes(8 << 20)).unwrap();
    give_all(&pool, 0, [first, second]);
    let small = pool.alloc(0, Bytes(300)).unwrap();
    let before = pool.stats();
    let gone = pool.release_idle();
    let after = pool.stats();
    assert_eq!((after.held + gone, after.discarded), (before.held, Bytes::ZERO));
    give_all(&pool, 0, [kept, small]);
}

#[test]
fn a_run_that_held_little_leaves_little() {
    for (idle_percent, is_less) in [(8, true), (100, false)] {
        let config = PoolConfig {
            segment: Bytes(256 << 20),
            idle_runs: 2,
            idle_percent,
            ..PoolConfig::default()
        };
        let (pool, kept) = hollow(&config);
        for _ in 0..4 {
            pool.end_run();
        }
        let can_give = cfg!(all(target_os = "linux", target_arch = "x86_64"));
        assert_eq!(pool.stats().held < Bytes(1 << 20), is_less && can_give);
        pool.free(0, kept);
    }
}

/// In-place churn: large buffers come and go, and in between they are lent to small ones, of another size each time. What is
/// held after a few rounds, and in the end.
fn churn(joins: bool) -> (Bytes, Bytes) {
    let at_hand = Bytes::ZERO;
    let pool = pool(&PoolConfig {
        joins,
        at_hand,
        idle_percent: 100,
        segment: Bytes(1 << 20),
        ..PoolConfig::default()
    });
    let mut held = Bytes::ZERO;
    for round in 0..200 {
        // A step writes over a large tensor in small pieces: the large block is free, and is lent to the pieces.
        let large = pool.alloc(0, Bytes(1 << 20)).expect("there is no limit");
        pool.free(0, large);
        let bytes = Bytes((1024 << (round % 5)) + 512 * (round % 7));
        let pieces: Vec<PoolBlock> =
            (0..40).map(|_| pool.alloc(0, bytes).expect("there is no limit")).collect();
        give_all(&pool, 0, pieces);
        if round == 3 {
            held = pool.stats().held;
        }
    }
    (held, pool.stats().held)
}

#[test]
fn what_is_lent_goes_home_or_the_pool_falls_to_pieces() {
    let (early, late) = churn(true);
    assert_eq!((early, late), (Bytes(1 << 20), Bytes(1 << 20)));
    let (early, late) = churn(false);
    assert!(early <= Bytes(5 << 20) && late.0 * 2 >= early.0 * 5, "{early} {late}");
}

#[test]
fn idle_segments_go_back_after_some_runs() {
    let pool = pool(&PoolConfig { idle_runs: 4, ..PoolConfig::default() });
    let run = |bytes| {
        let block = pool.alloc(0, Bytes(bytes)).unwrap();
        pool.free(0, block);
        pool.end_run();
        pool.stats().held
    };
    assert_eq!(run(8 << 20), Bytes(8 << 20));
    let held: Vec<Bytes> = (0..7).map(|_| run(8_000)).collect();
    assert_eq!(held[2], Bytes(8 << 20));
    assert_eq!(held[6], Bytes::ZERO);
    assert_eq!(run(8_000), Bytes(8 << 10));
    let held: Vec<Bytes> = (0..40).map(|_| run(8_000)).collect();
    assert!(held.iter().all(|&held| held == Bytes(8 << 10)));
    assert_eq!(pool.stats().released, 1);
}

#[test]
fn many_threads_in_a_small_pool_never_share_a_block() {
    const THREADS: usize = 8;
    let workers = NonZeroUsize::new(THREADS).unwrap();
    let config = PoolConfig { workers, limit: Bytes(24 << 20), homes: 3, ..PoolConfig::default() };
    let pool = &pool(&config);
    let exhausted: u64 = thread::scope(|scope| {
        let work = |worker: usize| {
            let (mut state, mut failed) = (worker as u64, 0);
            let mut held: VecDeque<PoolBlock> = VecDeque::new();
            for _ in 0..4_000 {
                let bytes = Bytes(tensor_bytes(&mut state));
                let home = usize::try_from(random(&mut state) % 6).unwrap();
                let block = match home {
                    0..3 => pool.alloc_home(worker, home, bytes),
                    _ => pool.alloc(worker, bytes),
                };
                if let Ok(mut block) = block {
                    pool.bytes_mut(&mut block).fill(u8::try_from(worker).unwrap());
                    held.push_back(block);
                } else {
                    failed += 1;
                }
                if failed % 3 == 2 || held.len() > 24 {
                    let Some(block) = held.pop_front() else { continue };
                    let mine = |&byte: &u8| usize::from(byte) == worker;
                    assert!(pool.bytes(&block).iter().all(mine));
                    match home {
                        0..3 => pool.free_home(worker, home, block),
                        _ => pool.free(worker, block),
                    }
                }
            }
            give_all(pool, worker, held);
            failed
        };
        let threads: Vec<_> =
            (0..THREADS).map(|worker| scope.spawn(move || work(worker))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let stats = pool.stats();
    assert!(exhausted > 0 && stats.peak_held <= Bytes(24 << 20));
    assert_eq!((stats.used, stats.asked, stats.allocs), (Bytes::ZERO, Bytes::ZERO, stats.frees));
    assert_eq!(pool.release_idle(), stats.held);
}

#[test]
fn figures_are_text_for_prometheus() {
    let pool = pool(&PoolConfig::default());
    let _kept = pool.alloc(0, Bytes(300)).unwrap();
    let text = pool.stats().to_prometheus("a \"b\"\\");
    let line = |start: &str| text.lines().find(|line| line.starts_with(start)).map(str::to_owned);
    let label = r#"{pool="a \"b\"\\"}"#;
    assert_eq!(line("lowtide_pool_used"), Some(format!("lowtide_pool_used_bytes{label} 512")));
    assert_eq!(
        line("lowtide_pool_internal"),
        Some(format!("lowtide_pool_internal_waste_bytes{label} 212"))
    );
    assert!(text.contains("\n# TYPE lowtide_pool_allocs_total counter\n"));
    assert!(text.contains(r#",size="512"} 1"#));
    for (at, line) in text.lines().enumerate() {
        let is_comment = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
        let value = line.rsplit(' ').next().unwrap();
        assert!(is_comment || value.parse::<u64>().is_ok(), "line {at}: {line}");
    }
}
